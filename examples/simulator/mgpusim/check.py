"""Compares where MGPUSim put the work-groups with a prediction for their times.

    python check.py [--device DEVICE] BLOCKS

BLOCKS is a file that -tbsched-blocks wrote. The prediction gets when each kernel arrived and how
long each of its work-groups ran. Printed are the work-groups on the predicted CU, the pairs of
work-groups of different kernels that share a CU at the same time, in MGPUSim and as predicted, and
the makespan of the kernels.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import tbsched as tb

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workloads"))

import compare
from blocks import placement


def read(path: Path, device: str) -> tuple[tb.Trace, list[int]]:
    """The run as a trace, and when each kernel arrived, in ns."""
    rows: dict[int, list[list[int]]] = {}
    kernels: dict[int, list[int]] = {}
    for line in path.read_text("utf-8").splitlines():
        kind, kernel, *values = line.split()
        numbers = [int(value) for value in values]
        if kind == "kernel":
            kernels[int(kernel)] = numbers
        else:
            rows.setdefault(int(kernel), []).append(numbers)
    launches, placements = [], []
    for kernel, (blocks, threads, registers, shared_memory, _) in sorted(kernels.items()):
        mine = np.array(rows.get(kernel, []), dtype=np.int64).reshape(-1, 4)
        placements.append(placement(mine, blocks, f"{path}: kernel {kernel}"))
        seconds = (placements[-1].end_ns - placements[-1].start_ns) / 1e9
        launches.append(
            tb.Launch(
                blocks,
                threads,
                registers,
                shared_memory,
                stream=kernel,
                duration=tuple(seconds.tolist()),
            )
        )
    arrivals = [values[-1] for _, values in sorted(kernels.items())]
    seq = tb.Sequence(launches)
    return tb.Trace(seq, tb.predict(seq, device).device, tuple(placements)), arrivals


def predicted(trace: tb.Trace, arrivals: list[int], device: str) -> tb.Trace:
    """The blocks run as long as in the trace, and nothing else takes time."""
    return tb.predict(
        trace.sequence,
        replace(compare.without_latencies(device), hardware_queues=128),
        issue_times=[arrival / 1e9 for arrival in arrivals],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="h200")
    parser.add_argument("blocks", type=Path)
    arguments = parser.parse_args()
    trace, arrivals = read(arguments.blocks, arguments.device)
    prediction = predicted(trace, arrivals, arguments.device)
    same, blocks = compare.same_sms(trace, prediction)
    print(f"on the predicted CU: {same} of {blocks}")
    print(f"neighbours: {compare.neighbours(trace)}, predicted {compare.neighbours(prediction)}")
    ends = max(int(p.end_ns.max()) for p in trace.placements)
    print(f"makespan: {ends - min(arrivals)} ns")


if __name__ == "__main__":
    main()
