"""Activity of host threads at any time: the call or function that they were in."""

from __future__ import annotations

import bisect
import operator
from array import array
from dataclasses import dataclass

import numpy as np

from tbsched.advice.account.intervals import Intervals, Overlaps, concatenated, overlaps
from tbsched.program.activity import ANNOTATION, CALL, FUNCTION, OPERATOR, STEP, UNKNOWN, Activity
from tbsched.program.arrays import BoolArray, Int64Array

_BACKWARD = "autograd::engine::"  # begins the names of its operators
_RUN_BACKWARD = "<built-in method run_backward"  # begins the function that waits for them
_OTHERS = 8  # other threads of a process to which time is attributed: those with most calls


@dataclass(frozen=True, slots=True)
class HostTime:
    """What each host thread was in at any time: the innermost call, operator or function.

    Of nested operators the outermost one counts: ``aten::linear`` says more than what it is made
    of. So does a call of CUDA, and not the calls of the system in it. An operator that is written
    in Python says less than those that its functions call, so these count.

    Attributes:
        lines: by thread its time, sorted and disjoint; ``of``: a row of ``activity.host``.
        inside: of each row of ``activity.host`` the row that it was made in, or ``UNKNOWN``, int64.
        is_outermost: of each row whether it counts: it is in no other call, or not directly in
            another operator.
        is_open: of each row whether it may be a wait for a thread of the backward pass: an
            annotation, or PyTorch's call of that pass.
        threads: of each process its threads, those with the most calls first.
    """

    activity: Activity
    lines: dict[int, Intervals]
    inside: Int64Array
    is_outermost: BoolArray
    is_open: BoolArray
    threads: dict[int, list[int]]

    @classmethod
    def of(cls, activity: Activity) -> HostTime:
        """Reads all that a profile has of the host."""
        host = activity.host
        inside = np.full(len(host), UNKNOWN, np.int64)
        is_outermost = np.zeros(len(host), np.bool_)
        lines: dict[int, Intervals] = {}
        calls: dict[int, int] = {}
        is_call = host["kind"] == CALL  # which is in what lasts as long, as times are rounded
        order = np.lexsort([is_call, -host["end_ns"], host["begin_ns"], host["thread"]])
        order = order[host["kind"][order] != STEP]
        threads, starts = np.unique(host["thread"][order], return_index=True)
        for thread, own in zip(threads.tolist(), np.split(order, starts)[1:], strict=True):
            kept = own[_outside(activity, own, CALL) & _outermost(activity, own)]
            is_outermost[kept] = True
            lines[thread] = _line(activity, kept, inside)
            calls[thread] = int((host["kind"][own] == CALL).sum())
        by_process: dict[int, list[int]] = {}
        for thread in sorted(lines, key=lambda thread: -calls[thread]):
            by_process.setdefault(activity.processes[thread], []).append(thread)
        awaits = [name.startswith(_RUN_BACKWARD) for name in activity.names]
        is_open = (host["kind"] == ANNOTATION) | np.array(awaits, np.bool_)[host["name"]]
        return cls(activity, lines, inside, is_outermost, is_open, by_process)

    def made_in(self, rows: Int64Array) -> Int64Array:
        """Returns the rows of ``activity.host`` that enclose some; ``UNKNOWN`` where none does."""
        known = rows != UNKNOWN
        found = np.full(len(rows), UNKNOWN)
        found[known] = self.inside[rows[known]]
        return found

    def spent(self, thread: Int64Array, intervals: Intervals) -> Overlaps:
        """Returns what threads did in intervals.

        Where the file has nothing of a thread, another thread of its process may have done
        something: that of a backward pass waits for the forward pass. The other way round, a
        thread that is in nothing but an annotation, or in PyTorch's call of the backward pass,
        waits for the backward pass, while that runs.

        Args:
            thread: of each interval, int64 (intervals,).
            intervals: any.

        Returns:
            Parts that cover the intervals: ``first`` is the place of the interval, ``second`` a
            row of ``activity.host``, or ``UNKNOWN`` where the file has nothing.
        """
        left = Overlaps(
            intervals.begin, intervals.end, np.arange(len(thread)), np.full(len(thread), UNKNOWN)
        )
        found: list[Overlaps] = []
        for tried in range(_OTHERS):
            asked = self._asked(thread[left.first], tried)
            rest = [left.some(~np.isin(asked, [*self.lines]))]
            for number in np.intersect1d(asked, [*self.lines]).tolist():
                line, own = self.lines[number], left.some(asked == number)
                parts = overlaps(Intervals(own.begin, own.end, own.first), line)
                open_, row = own.second[parts.first], line.of[parts.second]
                if tried:
                    row = self._said_of_others(row, open_)
                    is_known = row != UNKNOWN
                else:
                    open_, is_known = row, (row != UNKNOWN) & ~self.is_open[row]
                parts = parts._replace(first=own.first[parts.first])
                found.append(parts._replace(second=row).some(is_known))
                rest.append(parts._replace(second=open_).some(~is_known))
            left = concatenated(rest)
        return concatenated([*found, left])

    def _said_of_others(self, rows: Int64Array, open_: Int64Array) -> Int64Array:
        """Returns rows that say what a thread waits for elsewhere; ``UNKNOWN`` for other rows.

        A call or an operator is work that may be waited for. That another thread sleeps, or is in
        an annotation, says nothing. What a thread does in an annotation, its row ``open_``, is not
        known: like one in ``run_backward``, it may wait for a thread of PyTorch's backward pass,
        and for no other.
        """
        host = self.activity.host
        is_work = (rows != UNKNOWN) & np.isin(host["kind"][rows], (CALL, OPERATOR))
        backward = [name.startswith(_BACKWARD) for name in self.activity.names]
        threads = np.unique(host["thread"][np.array(backward, np.bool_)[host["name"]]])
        is_backward = np.isin(host["thread"][rows], threads)
        return np.where(is_work & (is_backward | (open_ == UNKNOWN)), rows, UNKNOWN)

    def _asked(self, thread: Int64Array, tried: int) -> Int64Array:
        """Returns whom to ask: first the thread itself, then the others of its process."""
        if not tried:
            return thread
        found = np.full(len(thread), UNKNOWN)
        for number in np.unique(thread).tolist():
            process = self.activity.processes[number]
            others = [other for other in self.threads.get(process, ()) if other != number]
            if tried <= len(others):
                found[thread == number] = others[tried - 1]
        return found


def _outside(activity: Activity, rows: Int64Array, kind: int) -> BoolArray:
    """Returns a mask of the rows of a thread that no row of a kind encloses."""
    host = activity.host
    end = host["end_ns"][rows]
    of_kind = np.where(host["kind"][rows] == kind, end, np.int64(-(2**62)))
    until = np.maximum.accumulate(np.append(np.int64(-(2**62)), of_kind))[:-1]
    found: BoolArray = end > until
    return found


def _outermost(activity: Activity, rows: Int64Array) -> BoolArray:
    """Returns a mask of the rows of a thread without the operators that are in others.

    Those that a Python function in another operator calls stay.
    """
    kind, end = activity.host["kind"][rows], activity.host["end_ns"][rows]
    is_inside = ~_outside(activity, rows, OPERATOR)
    found: BoolArray = ~(is_inside & (kind == OPERATOR))
    functions = is_inside & (kind == FUNCTION)
    if not functions.any():
        return found
    enclosing = {OPERATOR: _Enclosing(), FUNCTION: _Enclosing()}
    places = np.flatnonzero(functions | (kind == OPERATOR))
    for place, of, end_ns in zip(
        places.tolist(), kind[places].tolist(), end[places].tolist(), strict=True
    ):
        if not found[place]:
            found[place] = enclosing[FUNCTION].innermost(end_ns) > enclosing[OPERATOR].innermost(
                end_ns
            )
        enclosing[of].add(place, end_ns)
    return found


class _Enclosing:
    """Rows of a thread in their order, of which the last that ends late enough is wanted."""

    def __init__(self) -> None:
        # The ends descend: an earlier row that ends no later is never wanted again.
        self._places: list[int] = []
        self._ends: list[int] = []

    def add(self, place: int, end_ns: int) -> None:
        """Adds an interval that ends at ``end_ns``, and drops those that end before it does."""
        while self._ends and self._ends[-1] <= end_ns:
            self._ends.pop()
            self._places.pop()
        self._ends.append(end_ns)
        self._places.append(place)

    def innermost(self, end_ns: int) -> int:
        """Returns the place of the last one that ends then or later; -1: there is none."""
        count = bisect.bisect_right(self._ends, -end_ns, key=operator.neg)
        return self._places[count - 1] if count else -1


def _line(activity: Activity, rows: Int64Array, inside: Int64Array) -> Intervals:
    """Returns the time of a thread, cut where it enters or leaves something; fills ``inside``."""
    host = activity.host
    begin, end = host["begin_ns"][rows], host["end_ns"][rows]
    # Lists would take five times as much memory, and there may be ten million rows.
    parents, ends = array("q", [UNKNOWN]) * len(rows), array("q", end.tobytes())
    times, states = array("q", [-(2**62)]), array("q", [UNKNOWN])
    open_: list[int] = []  # one that has ended may lie below one that has not
    for place, began in enumerate(array("q", begin.tobytes())):
        while open_ and ends[open_[-1]] <= began:
            closed = open_.pop()
            times.append(max(times[-1], ends[closed]))
            states.append(open_[-1] if open_ else UNKNOWN)
        if open_:
            parents[place] = open_[-1]
        times.append(began)
        states.append(place)
        open_.append(place)
    while open_:
        times.append(max(times[-1], ends[open_.pop()]))
        states.append(open_[-1] if open_ else UNKNOWN)
    parent = np.frombuffer(parents, np.int64) if len(rows) else np.zeros(0, np.int64)
    inside[rows] = np.where(parent >= 0, rows[parent], UNKNOWN) if len(rows) else UNKNOWN
    at, state = np.frombuffer(times, np.int64), np.frombuffer(states, np.int64)
    of = np.where(state >= 0, rows[state], UNKNOWN) if len(rows) else state
    until = np.append(at[1:], np.int64(2**62))
    return Intervals(at, until, of).some(until > at)
