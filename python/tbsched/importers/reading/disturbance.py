"""Overhead of a capture: how much longer the recorded calls took because of it."""

from __future__ import annotations

import bisect
import statistics
from collections import Counter
from collections.abc import Iterable

from tbsched.counting import counted
from tbsched.importers.reading.joined import Call


def sentence_about(calls: Iterable[Call], spans: Iterable[tuple[int, int]]) -> str | None:
    """Returns a sentence about CUPTI's own time within launch calls; None: there is none.

    CUPTI records what takes long: its memory, its preparation of kernels, and its waits. The
    overhead of every single call is in no record, so the sum is a lower bound.

    Args:
        calls: all of them.
        spans: when the capture did something of its own, in ns.
    """
    launching = sorted(
        (call.call_ns, call.return_ns) for call in calls if call.what in ("work", "graph")
    )
    starts = [start for start, _ in launching]
    own: Counter[int] = Counter()
    last_ns = 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        index = bisect.bisect_right(starts, start) - 1
        if index >= 0 and last_ns < end <= launching[index][1]:  # else within the one before
            own[index] += end - start
            last_ns = end
    if not own.total():
        return None
    lengths = [end - start for start, end in launching]
    total, median = _us(sum(lengths)), _us(statistics.median(lengths))
    return (
        f"How long calls take without a capture: of {total} in "
        f"{counted(len(lengths), 'call')} that launch, "
        f"{_us(own.total())} or more were the capture's own, up to {_us(max(own.values()))} in one "
        f"(their median took {median}); assumed that they always take as long."
    )


def _us(ns: float) -> str:
    """Returns ns as text in us."""
    return f"{ns / 1e3:,.1f} us"
