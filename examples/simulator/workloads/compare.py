"""Compares where simulators, tbsched and GPUs put the blocks of the workloads.

    python compare.py --reference predict SIMULATOR.jsonl.xz...
    python compare.py --reference OBSERVED.jsonl.xz [--device BOARD.toml] SIMULATOR.jsonl.xz...

Prints a table of the workloads for each file, and a sum. Of a workload that was observed several
times the first trace counts. The columns:

blocks      on the same SM as in the reference, of all
pairs       pairs of launches that overlap in time in both or in neither, of all pairs
order       pairs of launches whose first blocks start in the same order, of all pairs
makespan    of the makespans of the launches alone one after the other; in brackets: reference
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
import workloads

import tbsched as tb

# Times that are less apart than this are equal: launch latencies are not in the simulators.
EQUAL_NS = 8_000


def spans(trace: tb.Trace) -> list[tuple[int, int]]:
    """First start and last end of each launch."""
    return [(int(p.start_ns.min()), int(p.end_ns.max())) for p in trace.placements]


def overlaps(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return min(a[1], b[1]) - max(a[0], b[0]) > EQUAL_NS


def first(a: tuple[int, int], b: tuple[int, int]) -> int:
    """-1: a starts first; 1: b; 0: together."""
    apart = a[0] - b[0]
    return 0 if abs(apart) <= EQUAL_NS else (1 if apart > 0 else -1)


def alone(seq: tb.Sequence) -> float:
    """Seconds that the launches take one after the other, each alone on the GPU."""
    return sum(tb.predict(tb.Sequence([launch]), "h200").makespan for launch in seq.launches)


def same_sms(a: tb.Trace, b: tb.Trace) -> tuple[int, int]:
    """How many blocks are on the same SM, of how many."""
    equal = [p.final_smid == q.final_smid for p, q in zip(a.placements, b.placements, strict=True)]
    flat = np.concatenate(equal)
    return int(flat.sum()), len(flat)


def row(name: str, trace: tb.Trace, reference: tb.Trace) -> tuple[list[str], np.ndarray]:
    same, blocks = same_sms(trace, reference)
    mine, theirs = spans(trace), spans(reference)
    pairs = list(combinations(range(len(mine)), 2))
    overlap = sum(overlaps(mine[i], mine[j]) == overlaps(theirs[i], theirs[j]) for i, j in pairs)
    order = sum(first(mine[i], mine[j]) == first(theirs[i], theirs[j]) for i, j in pairs)
    total = alone(trace.sequence)
    cells = [
        name,
        str(len(mine)),
        f"{same} / {blocks}",
        f"{overlap} / {len(pairs)}",
        f"{order} / {len(pairs)}",
        f"{trace.makespan / total:.2f} ({reference.makespan / total:.2f})",
    ]
    return cells, np.array([same, blocks, overlap, len(pairs), order])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reference", default="predict", help="predict, or a file of traces")
    parser.add_argument("--device", default="h200", help="for predict")
    parser.add_argument("traces", nargs="+", type=Path)
    arguments = parser.parse_args()
    references: dict[str, tb.Trace] = {}
    if arguments.reference != "predict":
        for trace in tb.load_traces(arguments.reference):
            references.setdefault(trace.id.split()[0], trace)
    for path in arguments.traces:
        print(f"\n{path}\n\n| workload | launches | blocks | pairs | order | makespan |")
        print("| --- | --- | --- | --- | --- | --- |")
        total = np.zeros(5, int)
        for trace in tb.load_traces(path):
            name = trace.id.split()[0]
            if name not in references:
                references[name] = tb.predict(workloads.sequence(name), arguments.device)
            cells, counts = row(name, trace, references[name])
            total += counts
            print(f"| {' | '.join(cells)} |")
        same, blocks, overlap, pairs, order = total
        print(f"| all | | {same} / {blocks} | {overlap} / {pairs} | {order} / {pairs} | |")


if __name__ == "__main__":
    main()
