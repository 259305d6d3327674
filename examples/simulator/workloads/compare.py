"""Compares where simulators, tbsched and GPUs put the blocks of the workloads.

    python compare.py SIMULATOR.jsonl.xz...
    python compare.py --reference times SIMULATOR.jsonl.xz...
    python compare.py --reference state [--device BOARD.toml] OBSERVED.jsonl.xz...
    python compare.py --reference OBSERVED.jsonl.xz SIMULATOR.jsonl.xz...

The reference is the prediction for the workload. With `times` it is the prediction for blocks that
run as long as they did in the simulator: its instruction timing plays no part then. With `state` it
is the prediction from the latent state that a GPU was in. Of a workload that was observed several
times the first trace counts. Two tables are printed. In the first, of
each workload and file, with the reference's neighbours and makespan before them:

blocks      on the same SM as in the reference
neighbours  pairs of blocks of different launches that share an SM at the same time
makespan    of the makespans of the launches alone, one after the other

In the second, of all workloads of a file:

pairs       pairs of launches that overlap in time in both or in neither
order       pairs of launches whose first blocks start in the same order
"""

from __future__ import annotations

import argparse
from dataclasses import fields, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import workloads

import tbsched as tb

# Times that are less apart than this are equal: launch latencies are not in the simulators.
EQUAL_NS = 8_000
# Launches that start within this time of each other start together: a host needs time to launch.
TOGETHER_NS = 80_000


def spans(trace: tb.Trace) -> list[tuple[int, int]]:
    """First start and last end of each launch."""
    return [(int(p.start_ns.min()), int(p.end_ns.max())) for p in trace.placements]


def overlaps(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return min(a[1], b[1]) - max(a[0], b[0]) > EQUAL_NS


def first(a: tuple[int, int], b: tuple[int, int]) -> int:
    """-1: a starts first; 1: b; 0: together."""
    apart = a[0] - b[0]
    return 0 if abs(apart) <= TOGETHER_NS else (1 if apart > 0 else -1)


def alone(seq: tb.Sequence, device: str) -> float:
    """Seconds that the launches take one after the other, each alone on the GPU."""
    return sum(tb.predict(tb.Sequence([launch]), device).makespan for launch in seq.launches)


def without_latencies(device: str) -> tb.DeviceSpec:
    """The device, if nothing but the blocks took time."""
    spec = tb.device(device)
    zero = {field.name: 0 for field in fields(spec) if field.name.endswith("_ns")}
    return replace(spec, **zero)  # type: ignore[arg-type]


def with_times_of(trace: tb.Trace, device: str) -> tb.Trace:
    """Predicts the blocks if they run as long as in the trace, and nothing else takes time."""
    launches = [
        replace(launch, duration=tuple(((p.end_ns - p.start_ns) / 1e9).tolist()))
        for launch, p in zip(trace.sequence.launches, trace.placements, strict=True)
    ]
    return tb.predict(tb.Sequence(launches), without_latencies(device))


def same_sms(a: tb.Trace, b: tb.Trace) -> tuple[int, int]:
    """How many blocks are on the same SM, of how many."""
    equal = [p.final_smid == q.final_smid for p, q in zip(a.placements, b.placements, strict=True)]
    flat = np.concatenate(equal)
    return int(flat.sum()), len(flat)


def neighbours(trace: tb.Trace) -> int:
    """Pairs of blocks of different launches that share an SM at the same time."""
    count = 0
    for p, q in combinations(trace.placements, 2):
        for sm in np.intersect1d(p.final_smid, q.final_smid):
            a, b = p.final_smid == sm, q.final_smid == sm
            ends = np.minimum(p.end_ns[a][:, None], q.end_ns[b])
            starts = np.maximum(p.start_ns[a][:, None], q.start_ns[b])
            count += int((ends - starts > EQUAL_NS).sum())
    return count


def from_its_state(trace: tb.Trace, device: str) -> tb.Trace:
    """Predicts from the latent state with which most blocks are where they were observed."""
    states = tb.device(device).initial_states()
    predictions = (tb.predict(trace.sequence, device, initial_state=state) for state in states)
    return max(predictions, key=lambda prediction: same_sms(trace, prediction))


class Row(NamedTuple):
    """How a workload in a file compares with the reference."""

    same: int  # blocks on the same SM
    blocks: int
    overlap: int  # pairs of launches that overlap in both or in neither
    order: int  # pairs of launches that start in the same order
    pairs: int
    neighbours: tuple[int, int]  # here, and in the reference
    makespan: tuple[float, float]  # of the launches alone, here and in the reference


def row(trace: tb.Trace, reference: tb.Trace, device: str = "h200") -> Row:
    same, blocks = same_sms(trace, reference)
    mine, theirs = spans(trace), spans(reference)
    pairs = list(combinations(range(len(mine)), 2))
    total = alone(trace.sequence, device)
    return Row(
        same,
        blocks,
        sum(overlaps(mine[i], mine[j]) == overlaps(theirs[i], theirs[j]) for i, j in pairs),
        sum(first(mine[i], mine[j]) == first(theirs[i], theirs[j]) for i, j in pairs),
        len(pairs),
        (neighbours(trace), neighbours(reference)),
        (trace.makespan / total, reference.makespan / total),
    )


def line(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reference", default="predict", help="predict, times, state, or a file")
    parser.add_argument("--device", default="h200", help="for predictions")
    parser.add_argument("traces", nargs="+", type=Path)
    arguments = parser.parse_args()
    references: dict[str, tb.Trace] = {}
    if arguments.reference not in ("predict", "times", "state"):
        for trace in tb.load_traces(arguments.reference):
            references.setdefault(trace.id.split()[0], trace)
    rows: dict[tuple[str, Path], Row] = {}
    for path in arguments.traces:
        for trace in tb.load_traces(path):
            name = trace.id.split()[0]
            if (name, path) in rows:
                continue
            if arguments.reference == "times":
                reference = with_times_of(trace, arguments.device)
            elif arguments.reference == "state":
                reference = from_its_state(trace, arguments.device)
            else:
                if name not in references:
                    references[name] = tb.predict(workloads.sequence(name), arguments.device)
                reference = references[name]
            rows[name, path] = row(trace, reference, arguments.device)
    names = [path.name.partition(".")[0] for path in arguments.traces]
    line("workload", "blocks", *names, "neighbours", *names, "makespan", *names)
    line(*["---"] * (4 + 3 * len(names)))
    for name in workloads.WORKLOADS:
        mine = [rows.get((name, path)) for path in arguments.traces]
        some = next((found for found in mine if found), None)
        if some is None:
            continue
        line(
            name,
            some.blocks,
            *[found.same if found else "" for found in mine],
            some.neighbours[1],
            *[found.neighbours[0] if found else "" for found in mine],
            f"{some.makespan[1]:.2f}",
            *[f"{found.makespan[0]:.2f}" if found else "" for found in mine],
        )
    print()
    line("", "workloads", "blocks", "pairs", "order")
    line(*["---"] * 5)
    for path, title in zip(arguments.traces, names, strict=True):
        found = [value for (_, at), value in rows.items() if at == path]
        pairs = sum(value.pairs for value in found)
        line(
            title,
            len(found),
            f"{sum(value.same for value in found)} of {sum(value.blocks for value in found)}",
            f"{sum(value.overlap for value in found)} of {pairs}",
            f"{sum(value.order for value in found)} of {pairs}",
        )


if __name__ == "__main__":
    main()
