"""The time of host threads between the calls of a program, and what they did in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from tbsched.advice.account.intervals import (
    Intervals,
    concatenated,
    gaps,
    joined,
    numbered,
    overlaps,
)
from tbsched.advice.explain.call_windows import preludes, windows_before_calls
from tbsched.advice.explain.facts import Facts
from tbsched.program.activity import UNKNOWN
from tbsched.program.arrays import BoolArray

_WAITS = re.compile(r"cu(da)?(Device|Ctx|Thread|Stream|Event)Synchronize")
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


def times_of_calls(facts: Facts, places: Iterable[int]) -> Times:
    """Returns the times that go with the calls of some events: what leads to each, and a wait right
    behind it that is no event of its own."""
    activity, calls = facts.account.activity, facts.calls
    host = activity.host
    rows = np.sort(calls[[*places]])
    rows = rows[rows != UNKNOWN]
    is_wait = np.array([_WAITS.match(name) is not None for name in activity.names], np.bool_)
    waits = np.setdiff1d(np.flatnonzero(is_wait[host["name"]]), calls)
    times: Times = {}
    for thread in np.unique(host["thread"][rows]).tolist():
        own = rows[host["thread"][rows] == thread]
        made = calls[(calls != UNKNOWN) & (host["thread"][calls] == thread)]
        made = made[np.argsort(host["end_ns"][made], kind="stable")]
        behind = waits[host["thread"][waits] == thread]
        last = np.searchsorted(host["end_ns"][made], host["begin_ns"][behind], side="right") - 1
        behind_own = (last >= 0) & np.isin(made[last], own)
        begin = np.append(preludes(activity, own), host["end_ns"][made[last[behind_own]]])
        end = np.append(host["begin_ns"][own], host["end_ns"][behind[behind_own]])
        times[thread] = joined(numbered(begin, end))
    return times


def with_preludes(facts: Facts, times: Times) -> Times:
    """Returns times of rows of ``activity.host``, their owners, with what leads to each."""
    activity = facts.account.activity
    return {
        thread: joined(line._replace(begin=np.minimum(line.begin, preludes(activity, line.owner))))
        for thread, line in times.items()
    }


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
