"""Operators whose results the host waits for: without them, or without what they find out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tbsched.advice.account.intervals import Intervals
from tbsched.advice.explain.changes.host_windows import Times, gaps_without
from tbsched.advice.explain.changes.proposal import Proposal, edited
from tbsched.advice.explain.facts import Facts
from tbsched.counting import counted
from tbsched.program.activity import OPERATOR, UNKNOWN
from tbsched.program.arrays import Int64Array
from tbsched.program.sequence import Copy, Event, HostCall

_VALUE_BYTES = 16  # of the largest single value, a complex number of two doubles
_NONZERO = "aten::nonzero"
# What a check for NaN or infinity begins with, goes on with, and ends with.
_TESTS = re.compile(r"aten::is(nan|inf|finite)$")
_COMBINES = re.compile(r"aten::(any|all|_is_any_true|_is_all_true|(logical|bitwise)_(not|and|or))$")
_READS = re.compile(r"aten::(item|is_nonzero)$")


def without_host_wait(event: Event) -> Event | None:
    """Returns a copy or host call that does not wait, in place of one that does; None: it only
    waits."""
    if isinstance(event, HostCall):
        return replace(event, waits=None, stream=None)
    return replace(event, blocking=False, pinned=True) if isinstance(event, Copy) else None


def is_value(event: Event) -> bool:
    """Returns whether an event copies a single value from the GPU."""
    return isinstance(event, Copy) and event.kind == "d2h" and event.bytes <= _VALUE_BYTES


def propose_no_nonzero(facts: Facts) -> Iterator[Proposal]:
    """Proposes the program without ``aten::nonzero``, which tells the host a number of values.

    So goes what its operator, such as ``aten::index``, does with their places until it launches.
    """
    activity = facts.account.activity
    host = activity.host
    named = activity.names.index(_NONZERO) if _NONZERO in activity.names else UNKNOWN
    rows = np.flatnonzero((host["name"] == named) & (host["kind"] == OPERATOR))
    times = _row_times(facts, rows)
    inside = _events_within(facts, times)
    if inside:
        yield edited(
            facts,
            f"without {counted(len(rows), 'call')} of {_NONZERO}, with which the host learns how "
            "many values a mask keeps: torch.where, or the mask as a factor",
            dict.fromkeys(inside),
            "if what the mask leaves out may be computed, too, and takes no longer",
            gaps_without(facts, _extended_to_next_call(facts, times, inside)),
        )


def propose_no_checks(facts: Facts) -> Iterator[Proposal]:
    """Proposes the program without checks for NaN or infinity whose results the host reads.

    Such as those of PyTorch's anomaly mode, after each function of the backward pass. This mode
    keeps tracebacks of the forward pass, too, which no profile has by themselves.
    """
    times = _checks(facts)
    inside = _events_within(facts, times)
    if inside:
        count = sum(len(line.begin) for line in times.values())
        yield edited(
            facts,
            f"without {counted(count, 'check')} for NaN or infinity that the host waits for: "
            "torch.autograd.set_detect_anomaly(False), or checks now and then",
            dict.fromkeys(inside),
            "if nothing is done about what they find; anomaly mode also keeps tracebacks of the "
            "forward pass, whose time is not counted",
            gaps_without(facts, times),
        )


def _checks(facts: Facts) -> Times:
    """Returns by thread the times of operators that test values, up to the one that reads the
    result; ``owner`` is that one's row of ``activity.host``."""
    activity, line_of = facts.account.activity, facts.account.times
    host, names = activity.host, activity.names
    if not any(map(_TESTS.match, names)):
        return {}
    rows = np.flatnonzero(line_of.is_outermost & (host["kind"] == OPERATOR))
    rows = rows[np.lexsort([host["begin_ns"][rows], host["thread"][rows]])]
    found: dict[int, list[tuple[int, int, int]]] = {}
    begin_ns, maker = -1, UNKNOWN  # of the check that may go on; -1: none
    for row in rows.tolist():
        name = names[host["name"][row]]
        goes_on = begin_ns >= 0 and line_of.inside[row] == maker
        if _TESTS.match(name) and not goes_on:
            begin_ns, maker = int(host["begin_ns"][row]), int(line_of.inside[row])
        elif goes_on and _READS.match(name):
            found.setdefault(int(host["thread"][row]), []).append(
                (begin_ns, int(host["end_ns"][row]), row)
            )
            begin_ns = -1
        elif not (goes_on and (_TESTS.match(name) or _COMBINES.match(name))):
            begin_ns = -1
    return {thread: Intervals(*np.array(own, np.int64).T) for thread, own in found.items()}


def _extended_to_next_call(facts: Facts, times: Times, inside: dict[int, int]) -> Times:
    """Returns times of operators, extended to the next call of their outer operator."""
    host, calls = facts.account.activity.host, facts.calls
    maker = facts.account.times.made_in(calls)
    called: dict[int, list[int]] = {}
    for place in np.flatnonzero(maker != UNKNOWN).tolist():
        if place not in inside:
            called.setdefault(int(maker[place]), []).append(int(host["begin_ns"][calls[place]]))
    until = {
        row: end
        for line in times.values()
        for row, end in zip(line.owner.tolist(), line.end.tolist(), strict=True)
    }
    for place, row in inside.items():
        later = [begin for begin in called.get(int(maker[place]), ()) if begin > until[row]]
        until[row] = min(later, default=until[row])
    return {
        thread: line._replace(end=np.array([until[row] for row in line.owner.tolist()]))
        for thread, line in times.items()
    }


def _row_times(facts: Facts, rows: Int64Array) -> Times:
    """Returns the times of rows of ``activity.host`` by thread, in order."""
    host = facts.account.activity.host
    rows = rows[np.argsort(host["begin_ns"][rows], kind="stable")]
    times: Times = {}
    for thread in np.unique(host["thread"][rows]).tolist():
        rows_ = rows[host["thread"][rows] == thread]
        times[thread] = Intervals(host["begin_ns"][rows_], host["end_ns"][rows_], rows_)
    return times


def _events_within(facts: Facts, times: Times) -> dict[int, int]:
    """Returns the places of events called in some times, with the row of that time."""
    host, calls = facts.account.activity.host, facts.calls
    rows_of: dict[int, int] = {}
    for thread, line in times.items():
        places = np.flatnonzero((calls != UNKNOWN) & (host["thread"][calls] == thread))
        begin = host["begin_ns"][calls[places]]
        last = np.searchsorted(line.begin, begin, side="right") - 1
        is_in = (last >= 0) & (begin < line.end[np.maximum(last, 0)])
        rows_of |= zip(places[is_in].tolist(), line.owner[last[is_in]].tolist(), strict=True)
    return rows_of
