"""The time of host threads between the calls of a program, and what they did in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from tbsched.advice.account.intervals import Intervals, joined, overlaps
from tbsched.advice.explain.facts import Facts
from tbsched.program.activity import UNKNOWN
from tbsched.program.arrays import BoolArray, Int64Array

# A mask of the rows of ``activity.host`` (or UNKNOWN) that are meant.
Chosen: TypeAlias = Callable[[Int64Array], BoolArray]


class Window(NamedTuple):
    """The time before a call, since the call before it of its thread returned.

    Attributes:
        place: of the event.
        thread: of ``activity.host``.
        begin_ns, end_ns: on the clock of the profile.
    """

    place: int
    thread: int
    begin_ns: int
    end_ns: int


def windows(facts: Facts) -> Iterator[Window]:
    """Yields the window of each event whose call is known."""
    calls = facts.program.calls
    assert calls is not None  # an explained program has them
    host = facts.account.activity.host
    since: dict[int, int] = {}
    known = np.flatnonzero(calls != UNKNOWN)
    rows = host[calls[known]]
    columns = (rows[name].tolist() for name in ("thread", "begin_ns", "end_ns"))
    for place, thread, begin, end in zip(known.tolist(), *columns, strict=True):
        yield Window(place, thread, min(since.get(thread, begin), begin), begin)
        since[thread] = max(end, since.get(thread, end))


def gaps_without(facts: Facts, chosen: Chosen) -> tuple[float, ...]:
    """The gaps between calls, in seconds, without the time in which threads did what is chosen."""
    gaps = [*facts.program.host]
    lines = {
        thread: joined(line.some(chosen(line.of)))
        for thread, line in facts.account.times.lines.items()
    }
    for window in windows(facts):
        if window.begin_ns >= window.end_ns:
            continue
        begin, end = np.array([window.begin_ns]), np.array([window.end_ns])
        meets = overlaps(Intervals(begin, end, np.zeros(1, np.int64)), lines[window.thread])
        gaps[window.place] -= min(gaps[window.place], int((meets.end - meets.begin).sum()) / 1e9)
    return tuple(gaps)


def gaps_without_unrecorded(facts: Facts, at_least_ns: int) -> tuple[float, ...]:
    """The gaps between calls without long times in which the profile has nothing of any thread."""
    gaps = [*facts.program.host]
    known = [line.some(line.of != UNKNOWN) for line in facts.account.times.lines.values()]
    busy = joined(Intervals(*(np.concatenate(column) for column in zip(*known, strict=True))))
    for window in windows(facts):
        if window.end_ns - window.begin_ns < at_least_ns:
            continue
        begin, end = np.array([window.begin_ns]), np.array([window.end_ns])
        meets = overlaps(Intervals(begin, end, np.zeros(1, np.int64)), busy)
        edges = np.append(window.begin_ns, meets.end), np.append(meets.begin, window.end_ns)
        nothing = edges[1] - edges[0]
        less = int(nothing[nothing >= at_least_ns].sum()) / 1e9
        gaps[window.place] = max(0.0, gaps[window.place] - less)
    return tuple(gaps)
