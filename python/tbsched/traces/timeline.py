"""When blocks ran, and what share of its wait a launch spent on what."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tbsched.program.arrays import Int64Array, StructuredArray, numbered_blocks, read_only
from tbsched.traces.annotations import NEVER_NS
from tbsched.traces.placement import Placement

BLOCK = np.dtype(
    [("launch", np.int32), ("block", np.int32), ("sm", np.int32),
     ("start_ns", np.int64), ("end_ns", np.int64)]
)  # fmt: skip


def timeline_of(placements: Iterable[Placement]) -> StructuredArray:
    """Returns one row per block, by launch and block (see :attr:`tbsched.Trace.timeline`)."""
    listed = tuple(placements)
    starts, ends = [], []  # and no tuple of both that lives on: of very many they would be slow
    for launch, placement in enumerate(listed):
        start_ns, end_ns = times_of(launch, placement)
        starts.append(start_ns)
        ends.append(end_ns)
    sizes = np.array([len(start_ns) for start_ns in starts], np.int64)
    rows = np.empty(sizes.sum(), BLOCK)
    if len(rows):
        final = [p.smid if p.final_smid is None else p.final_smid for p in listed]
        rows["launch"], rows["block"] = numbered_blocks(sizes)
        rows["sm"] = np.concatenate(final)
        rows["start_ns"] = np.concatenate(starts)
        rows["end_ns"] = np.concatenate(ends)
    return read_only(rows)


def has_times(placements: Iterable[Placement]) -> bool:
    """Returns whether it was recorded of all of them when their blocks ran."""
    return all(p.start_ns is not None and p.end_ns is not None for p in placements)


def times_of(launch: int, placement: Placement) -> tuple[Int64Array, Int64Array]:
    """Returns when the blocks of a launch started and ended, in nanoseconds.

    Raises:
        ValueError: nobody recorded it.
    """
    if placement.start_ns is None or placement.end_ns is None:
        raise ValueError(
            f"timeline: nobody recorded when the blocks of launch {launch} ran; for times in a "
            "prediction, give launches durations: Launch(..., duration=seconds), in JSON "
            '"duration": seconds'
        )
    return placement.start_ns, placement.end_ns


def span_of(launch: int, placement: Placement) -> tuple[int, int]:
    """Returns when the first block of a launch started and the last one ended, in nanoseconds.

    Raises:
        ValueError: nobody recorded it.
    """
    start_ns, end_ns = times_of(launch, placement)
    return int(start_ns.min()), int(end_ns.max())


def makespan_of(placements: Iterable[Placement]) -> float:
    """Returns the seconds from the first block's start to the last end; infinity in a hang.

    Raises:
        ValueError: nobody recorded it.
    """
    spans = []
    for launch, placement in enumerate(placements):
        start_ns, end_ns = times_of(launch, placement)
        final = placement.smid if placement.final_smid is None else placement.final_smid
        ran = final >= 0
        if not ran.all():
            if start_ns[~ran].max() == NEVER_NS:
                return math.inf
            start_ns, end_ns = start_ns[ran], end_ns[ran]
        if len(start_ns):
            spans.append((int(start_ns.min()), int(end_ns.max())))
    if any(end == NEVER_NS for _, end in spans):
        return math.inf
    return (max(end for _, end in spans) - min(start for start, _ in spans)) / 1e9 if spans else 0.0


def busiest_ns(timeline: StructuredArray) -> int:
    """Returns the first ns at which most blocks are resident; 0 if there are no blocks."""
    ran = timeline[timeline["sm"] >= 0]
    if not len(ran):
        return 0
    starts, ends = np.sort(ran["start_ns"]), np.sort(ran["end_ns"])
    resident = np.arange(1, len(starts) + 1) - ends.searchsorted(starts, side="right")
    return int(starts[resident.argmax()])


def shares_of(waits: StructuredArray) -> list[tuple[tuple[str, int], int]]:
    """Returns the sums of waits in ns, the largest first: each with its cause and the launch behind
    which the wait was."""
    shares: dict[tuple[str, int], int] = {}
    waited = waits["end_ns"] - waits["begin_ns"]
    columns = (waits["cause"].tolist(), waits["behind"].tolist(), waited.tolist())
    for cause, blocking_launch, time in zip(*columns, strict=True):
        shares[cause, blocking_launch] = shares.get((cause, blocking_launch), 0) + time
    return sorted(shares.items(), key=lambda item: -item[1])


def waited_ns(waits: StructuredArray) -> int:
    """Returns how long the waits lasted, in all."""
    return int((waits["end_ns"] - waits["begin_ns"]).sum())


class Running:
    """Which launches ran when, to be asked many times."""

    def __init__(self, timeline: StructuredArray) -> None:
        self._start, self._end = (timeline[key].copy() for key in ("start_ns", "end_ns"))
        self._launch, self._first = np.unique(timeline["launch"], return_index=True)
        self._last = np.append(self._first[1:], len(timeline))
        has_blocks = len(timeline) > 0
        self._begin = np.minimum.reduceat(self._start, self._first) if has_blocks else self._start
        self._finish = np.maximum.reduceat(self._end, self._first) if has_blocks else self._end

    def during(self, begin_ns: int, end_ns: int) -> list[int]:
        """Returns the launches of which a block ran between the two."""
        is_running = (self._begin < end_ns) & (self._finish > begin_ns)
        rows = zip(
            self._launch[is_running], self._first[is_running], self._last[is_running], strict=True
        )
        return [int(k) for k, *rows in rows if self._any(slice(*rows), begin_ns, end_ns)]

    def _any(self, rows: slice, begin_ns: int, end_ns: int) -> bool:
        """Returns whether a block of these rows of the timeline ran between two times, in ns."""
        start, end = self._start[rows], self._end[rows]
        # Blocks start in order, so this is most often one that still ran.
        last = max(0, int(start.searchsorted(end_ns)) - 1)
        if start[last] < end_ns and end[last] > begin_ns:
            return True
        return bool(((start < end_ns) & (end > begin_ns)).any())
