"""The time of host threads between the calls of a program, and what they did in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from tbsched.advice.account.intervals import Intervals, gaps, joined, overlaps
from tbsched.advice.explain.facts import Facts
from tbsched.program.activity import UNKNOWN
from tbsched.program.arrays import BoolArray, Int64Array

# A mask of the rows of ``activity.host`` (or UNKNOWN) that are meant.
Chosen: TypeAlias = Callable[[Int64Array], BoolArray]
# By thread of ``activity.host`` its times, sorted and disjoint.
Times: TypeAlias = dict[int, Intervals]


class Windows(NamedTuple):
    """The times before calls, since the call before it of its host returned; int64 each.

    Attributes:
        place: of the event.
        thread: of ``activity.host``.
        begin_ns, end_ns: on the clock of the profile.
    """

    place: Int64Array
    thread: Int64Array
    begin_ns: Int64Array
    end_ns: Int64Array


def windows(facts: Facts) -> Windows:
    """Returns the window of each event whose call is known, in the order of events."""
    calls = facts.calls
    known = np.flatnonzero(calls != UNKNOWN)
    rows = facts.account.activity.host[calls[known]]
    begin, end = rows["begin_ns"].copy(), rows["begin_ns"]
    hosts = np.array([getattr(event, "host", 0) for event in facts.program.sequence])[known]
    for host in np.unique(hosts).tolist():
        own = np.flatnonzero(hosts == host)
        returned = np.maximum.accumulate(rows["end_ns"][own])
        begin[own[1:]] = np.minimum(returned[:-1], end[own[1:]])
    return Windows(known, rows["thread"].astype(np.int64), begin, end)


def time_of(facts: Facts, chosen: Chosen) -> Times:
    """Returns the times in which threads did what is chosen."""
    return {
        thread: joined(line.some(chosen(line.of)))
        for thread, line in facts.account.times.lines.items()
    }


def gaps_without(facts: Facts, times: Times) -> tuple[float, ...]:
    """Returns the gaps between calls, in seconds, without some times of their threads."""
    found = np.array(facts.program.host)
    place, threads, begin, end = windows(facts)
    for thread, own in times.items():
        some = np.flatnonzero(threads == thread)
        meets = overlaps(Intervals(begin[some], end[some], place[some]), own)
        np.subtract.at(found, place[some][meets.first], (meets.end - meets.begin) / 1e9)
    return tuple(np.maximum(found, 0.0).tolist())


def gaps_without_unrecorded(facts: Facts, at_least_ns: int) -> tuple[float, ...]:
    """The gaps between calls without long times in which the profile has nothing of any thread."""
    known = [line.some(line.of != UNKNOWN) for line in facts.account.times.lines.values()]
    busy = joined(Intervals(*(np.concatenate(column) for column in zip(*known, strict=True))))
    nothing = gaps(busy, -(2**62), 2**62)
    found = np.array(facts.program.host)
    place, _, begin, end = windows(facts)
    meets = overlaps(Intervals(begin, end, place), nothing)
    long = meets.some(meets.end - meets.begin >= at_least_ns)
    np.subtract.at(found, place[long.first], (long.end - long.begin) / 1e9)
    return tuple(np.maximum(found, 0.0).tolist())
