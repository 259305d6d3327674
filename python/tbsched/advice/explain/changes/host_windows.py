"""The time of host threads between the calls of a program, and what they did in it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tbsched.advice.account.intervals import Intervals, concatenated, gaps, joined, overlaps
from tbsched.advice.explain.call_windows import windows_before_calls
from tbsched.advice.explain.facts import Facts
from tbsched.program.activity import UNKNOWN
from tbsched.program.arrays import BoolArray

# By thread of ``activity.host`` its times, sorted and disjoint.
Times: TypeAlias = dict[int, Intervals]


def times_of_rows(facts: Facts, chosen: BoolArray) -> Times:
    """Returns the times in which threads did what a mask of ``activity.host`` chooses."""
    return {
        thread: joined(line.select((line.owner != UNKNOWN) & chosen[line.owner]))
        for thread, line in facts.account.times.lines.items()
    }


def unrecorded_times(facts: Facts) -> Times:
    """Returns the times in which the profile has nothing of any thread."""
    lines = facts.account.times.lines
    known = [line.select(line.owner != UNKNOWN) for line in lines.values()]
    busy = joined(concatenated(known))
    return dict.fromkeys(lines, gaps(busy, -(2**62), 2**62))


def gaps_without(facts: Facts, times: Times, at_least_ns: int = 0) -> tuple[float, ...]:
    """Returns the gaps between calls, in seconds, without long parts in some times. One that was
    fitted may be shorter than its parts: then it is below 0."""
    gaps_ = np.array(facts.program.host)
    all_windows, threads = windows_before_calls(facts.program, facts.account.activity)
    for thread, times_ in times.items():
        windows_ = all_windows.select(threads == thread)
        parts = overlaps(windows_, times_)
        parts = parts.select(parts.end - parts.begin >= at_least_ns)
        np.subtract.at(gaps_, windows_.owner[parts.first], (parts.end - parts.begin) / 1e9)
    return tuple(gaps_.tolist())
