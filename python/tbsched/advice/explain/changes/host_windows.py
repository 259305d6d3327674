"""The time of host threads between the calls of a program, and what they did in it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tbsched.advice.account.intervals import Intervals, concatenated, gaps, joined, overlaps
from tbsched.advice.explain.facts import Facts
from tbsched.program.activity import UNKNOWN
from tbsched.program.arrays import BoolArray, Int64Array

# By thread of ``activity.host`` its times, sorted and disjoint.
Times: TypeAlias = dict[int, Intervals]


def windows(facts: Facts) -> tuple[Intervals, Int64Array]:
    """Returns the times before known calls, since the call before it of its host returned.

    Also returns the thread of each, a number of ``activity.host``; ``of`` is the place of the
    event. In the order of events.
    """
    calls = facts.calls
    known = np.flatnonzero(calls != UNKNOWN)
    rows = facts.account.activity.host[calls[known]]
    begin, end = rows["begin_ns"].copy(), rows["begin_ns"]
    hosts = np.array([getattr(event, "host", 0) for event in facts.program.sequence])[known]
    for host in np.unique(hosts).tolist():
        own = np.flatnonzero(hosts == host)
        returned = np.maximum.accumulate(rows["end_ns"][own])
        begin[own[1:]] = np.minimum(returned[:-1], end[own[1:]])
    return Intervals(begin, end, known), rows["thread"].astype(np.int64)


def time_of(facts: Facts, chosen: BoolArray) -> Times:
    """Returns the times in which threads did what is chosen, a mask of ``activity.host``."""
    return {
        thread: joined(line.some((line.of != UNKNOWN) & chosen[line.of]))
        for thread, line in facts.account.times.lines.items()
    }


def unrecorded(facts: Facts) -> Times:
    """Returns the times in which the profile has nothing of any thread."""
    lines = facts.account.times.lines
    known = [line.some(line.of != UNKNOWN) for line in lines.values()]
    busy = joined(concatenated(known))
    return dict.fromkeys(lines, gaps(busy, -(2**62), 2**62))


def gaps_without(facts: Facts, times: Times, at_least_ns: int = 0) -> tuple[float, ...]:
    """Returns the gaps between calls, in seconds, without long parts in times of their threads."""
    found = np.array(facts.program.host)
    every, threads = windows(facts)
    for thread, own in times.items():
        some = every.some(threads == thread)
        parts = overlaps(some, own)
        parts = parts.some(parts.end - parts.begin >= at_least_ns)
        np.subtract.at(found, some.of[parts.first], (parts.end - parts.begin) / 1e9)
    return tuple(np.maximum(found, 0.0).tolist())
