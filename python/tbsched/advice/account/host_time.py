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
_MAX_OTHER_THREADS = (
    8  # other threads of a process to which time is attributed: those with most calls
)


@dataclass(frozen=True, slots=True)
class HostTime:
    """What each host thread was in at any time: the innermost call, operator or function.

    Of nested operators the outermost one counts: ``aten::linear`` says more than what it is made
    of. So does a call of CUDA, and not the calls of the system in it. An operator that is written
    in Python says less than those that its functions call, so these count. So do those that
    PyTorch's engine of the backward pass calls: the function to evaluate, checks and hooks.

    Attributes:
        lines: by thread its time, sorted and disjoint; ``owner``: a row of ``activity.host``.
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
        """Returns what a profile says of its host threads."""
        host, kinds = activity.host, _kinds_that_count(activity)
        inside = np.full(len(host), UNKNOWN, np.int64)
        is_outermost = np.zeros(len(host), np.bool_)
        lines: dict[int, Intervals] = {}
        calls: dict[int, int] = {}
        is_call = host["kind"] == CALL  # which is in what lasts as long, as times are rounded
        order = np.lexsort([is_call, -host["end_ns"], host["begin_ns"], host["thread"]])
        order = order[host["kind"][order] != STEP]
        threads, starts = np.unique(host["thread"][order], return_index=True)
        for thread, own in zip(threads.tolist(), np.split(order, starts)[1:], strict=True):
            end_ns, kind = host["end_ns"][own], kinds[own]
            kept = own[_outside(kind, end_ns, CALL) & _outermost(kind, end_ns)]
            is_outermost[kept] = True
            lines[thread] = _innermost_line(activity, kept, inside)
            calls[thread] = int((host["kind"][own] == CALL).sum())
        by_process: dict[int, list[int]] = {}
        for thread in sorted(lines, key=lambda thread: -calls[thread]):
            by_process.setdefault(activity.processes[thread], []).append(thread)
        awaits = [name.startswith(_RUN_BACKWARD) for name in activity.names]
        is_open = (host["kind"] == ANNOTATION) | np.array(awaits, np.bool_)[host["name"]]
        return cls(activity, lines, inside, is_outermost, is_open, by_process)

    def made_in(self, rows: Int64Array) -> Int64Array:
        """Returns the row of ``activity.host`` that encloses each row; ``UNKNOWN``: none does."""
        known = rows != UNKNOWN
        enclosing = np.full(len(rows), UNKNOWN)
        enclosing[known] = self.inside[rows[known]]
        return enclosing

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
        parts_found: list[Overlaps] = []
        for attempt in range(_MAX_OTHER_THREADS):
            threads_to_try = self._thread_to_try(thread[left.first], attempt)
            still_unknown = [left.select(~np.isin(threads_to_try, [*self.lines]))]
            for thread_ in np.intersect1d(threads_to_try, [*self.lines]).tolist():
                line, unknown = self.lines[thread_], left.select(threads_to_try == thread_)
                parts = overlaps(Intervals(unknown.begin, unknown.end, unknown.first), line)
                open_, row = unknown.second[parts.first], line.owner[parts.second]
                if attempt:
                    row = self._work_of_others(row, open_)
                    is_known = row != UNKNOWN
                else:
                    open_, is_known = row, (row != UNKNOWN) & ~self.is_open[row]
                parts = parts._replace(first=unknown.first[parts.first])
                parts_found.append(parts._replace(second=row).select(is_known))
                still_unknown.append(parts._replace(second=open_).select(~is_known))
            left = concatenated(still_unknown)
        return concatenated([*parts_found, left])

    def _work_of_others(self, rows: Int64Array, open_: Int64Array) -> Int64Array:
        """Returns rows that are work another thread may wait for; ``UNKNOWN`` for other rows.

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

    def _thread_to_try(self, thread: Int64Array, attempt: int) -> Int64Array:
        """Returns which thread to look at: the thread itself, then others of its process."""
        if not attempt:
            return thread
        threads = np.full(len(thread), UNKNOWN)
        for thread_ in np.unique(thread).tolist():
            process = self.activity.processes[thread_]
            others = [other for other in self.threads.get(process, ()) if other != thread_]
            if attempt <= len(others):
                threads[thread == thread_] = others[attempt - 1]
        return threads


def _kinds_that_count(activity: Activity) -> Int64Array:
    """Returns the kind of each row of the host, int64. What PyTorch's engine of the backward pass
    calls from is a function like those of Python, not an operator."""
    is_engine = np.array([name.startswith(_BACKWARD) for name in activity.names], np.bool_)
    kinds = activity.host["kind"].astype(np.int64)
    kinds[(kinds == OPERATOR) & is_engine[activity.host["name"]]] = FUNCTION
    return kinds


def _outside(kind: Int64Array, end_ns: Int64Array, enclosing: int) -> BoolArray:
    """Returns a mask of the rows of a thread, in order, that no row of a kind encloses."""
    of_kind = np.where(kind == enclosing, end_ns, np.int64(-(2**62)))
    until = np.maximum.accumulate(np.append(np.int64(-(2**62)), of_kind))[:-1]
    is_outside: BoolArray = end_ns > until
    return is_outside


def _outermost(kind: Int64Array, end_ns: Int64Array) -> BoolArray:
    """Returns a mask of the rows of a thread, in order, without the operators that are in others.
    Those that a Python function in another operator calls stay."""
    is_inside = ~_outside(kind, end_ns, OPERATOR)
    is_outermost: BoolArray = ~(is_inside & (kind == OPERATOR))
    functions = is_inside & (kind == FUNCTION)
    if not functions.any():
        return is_outermost
    enclosing = {OPERATOR: _OpenIntervals(), FUNCTION: _OpenIntervals()}
    indices = np.flatnonzero(functions | (kind == OPERATOR))
    for index, kind_, end in zip(
        indices.tolist(), kind[indices].tolist(), end_ns[indices].tolist(), strict=True
    ):
        if not is_outermost[index]:
            is_outermost[index] = enclosing[FUNCTION].innermost(end) > enclosing[
                OPERATOR
            ].innermost(end)
        enclosing[kind_].add(index, end)
    return is_outermost


class _OpenIntervals:
    """Intervals by start, to find the last one that does not end before a time."""

    def __init__(self) -> None:
        # The ends descend: an earlier row that ends no later is never wanted again.
        self._places: list[int] = []
        self._ends: list[int] = []

    def add(self, place: int, end_ns: int) -> None:
        """Adds an interval that ends at ``end_ns``; drops those that end no later."""
        while self._ends and self._ends[-1] <= end_ns:
            self._ends.pop()
            self._places.pop()
        self._ends.append(end_ns)
        self._places.append(place)

    def innermost(self, end_ns: int) -> int:
        """Returns the index of the last interval that ends at ``end_ns`` or later; -1: none."""
        count = bisect.bisect_right(self._ends, -end_ns, key=operator.neg)
        return self._places[count - 1] if count else -1


def _innermost_line(activity: Activity, rows: Int64Array, inside: Int64Array) -> Intervals:
    """Returns the innermost row of a thread at each time; fills ``inside`` with enclosing rows."""
    host = activity.host
    begin, end = host["begin_ns"][rows], host["end_ns"][rows]
    # Lists would take five times as much memory, and there may be ten million rows.
    parents, ends = array("q", [UNKNOWN]) * len(rows), array("q", end.tobytes())
    times, states = array("q", [-(2**62)]), array("q", [UNKNOWN])
    open_: list[int] = []  # one that has ended may lie below one that has not
    for index, begin_ in enumerate(array("q", begin.tobytes())):
        while open_ and ends[open_[-1]] <= begin_:
            closed = open_.pop()
            times.append(max(times[-1], ends[closed]))
            states.append(open_[-1] if open_ else UNKNOWN)
        if open_:
            parents[index] = open_[-1]
        times.append(begin_)
        states.append(index)
        open_.append(index)
    while open_:
        times.append(max(times[-1], ends[open_.pop()]))
        states.append(open_[-1] if open_ else UNKNOWN)
    parent = np.frombuffer(parents, np.int64) if len(rows) else np.zeros(0, np.int64)
    inside[rows] = np.where(parent >= 0, rows[parent], UNKNOWN) if len(rows) else UNKNOWN
    begin_ns, state = np.frombuffer(times, np.int64), np.frombuffer(states, np.int64)
    owner = np.where(state >= 0, rows[state], UNKNOWN) if len(rows) else state
    end_ns = np.append(begin_ns[1:], np.int64(2**62))
    return Intervals(begin_ns, end_ns, owner).select(end_ns > begin_ns)
