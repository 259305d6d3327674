"""When blocks ran, and what share of its wait a launch spent on what."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tbsched.program.arrays import Int64Array, StructuredArray
from tbsched.traces.placement import Placement

BLOCK = np.dtype(
    [("launch", np.int32), ("block", np.int32), ("sm", np.int32),
     ("start_ns", np.int64), ("end_ns", np.int64)]
)  # fmt: skip


def timeline_of(placements: Iterable[Placement]) -> StructuredArray:
    """One row per block, by launch and block (see :attr:`tbsched.Trace.timeline`)."""
    timed = [(*times_of(*item), item[1]) for item in enumerate(placements)]
    rows = np.empty(sum(len(start_ns) for start_ns, _, _ in timed), BLOCK)
    begin = 0
    for number, (start_ns, end_ns, placement) in enumerate(timed):
        some = rows[begin : begin + len(start_ns)]
        some["launch"], some["block"] = number, np.arange(len(some))
        some["sm"] = placement.smid if placement.final_smid is None else placement.final_smid
        some["start_ns"], some["end_ns"] = start_ns, end_ns
        begin += len(some)
    return rows


def times_of(launch: int, placement: Placement) -> tuple[Int64Array, Int64Array]:
    """When the blocks of a launch started and ended, in nanoseconds.

    Raises:
        ValueError: nobody recorded it.
    """
    if placement.start_ns is None or placement.end_ns is None:
        raise ValueError(f"timeline: nobody recorded when the blocks of launch {launch} ran")
    return placement.start_ns, placement.end_ns


def span_of(launch: int, placement: Placement) -> tuple[int, int]:
    """When the first block of a launch started and the last one ended, in nanoseconds.

    Raises:
        ValueError: nobody recorded it.
    """
    start_ns, end_ns = times_of(launch, placement)
    return int(start_ns.min()), int(end_ns.max())


def makespan_of(timeline: StructuredArray) -> float:
    """Seconds from the start of the first block to the end of the last."""
    ran = timeline[timeline["sm"] >= 0]
    return float(ran["end_ns"].max() - ran["start_ns"].min()) / 1e9 if len(ran) else 0.0


def shares_of(waits: StructuredArray) -> list[tuple[tuple[str, int], int]]:
    """Nanoseconds of a launch's waits by cause and the launch behind it, the longest first."""
    shares: dict[tuple[str, int], int] = {}
    for row in waits:
        key = (str(row["cause"]), int(row["behind"]))
        shares[key] = shares.get(key, 0) + int(row["end_ns"] - row["begin_ns"])
    return sorted(shares.items(), key=lambda item: -item[1])


def waited_ns(waits: StructuredArray) -> int:
    """How long the waits lasted, in all."""
    return int((waits["end_ns"] - waits["begin_ns"]).sum())


def beside(timeline: StructuredArray, waits: StructuredArray) -> list[int]:
    """The launches that ran while the waits lasted."""
    begin, end = waits["begin_ns"].min(), waits["end_ns"].max()
    there = (timeline["start_ns"] < end) & (timeline["end_ns"] > begin)
    found: list[int] = np.unique(timeline["launch"][there]).tolist()
    return found
