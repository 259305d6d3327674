"""Operators that only wait for the GPU: values that the host reads, with the tests for them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tbsched.advice.account.intervals import Intervals
from tbsched.advice.explain.changes.host_windows import Times, gaps_without, with_preludes
from tbsched.advice.explain.changes.operators import is_value
from tbsched.advice.explain.changes.proposal import Proposal, edited
from tbsched.advice.explain.facts import Facts
from tbsched.counting import counted
from tbsched.prediction.calls import waits_for_gpu
from tbsched.program.activity import OPERATOR, UNKNOWN
from tbsched.program.sequence import Copy, Event, HostCall

_READ_TOGETHER_NS = 100_000  # between values that are read one after the other
# Operators whose only result is one truth value, and those that make one of each element.
_TESTS = re.compile(r"aten::(any|all|equal|_is_any_true|_is_all_true)$")
_COMPARES = re.compile(r"aten::(eq|ne|lt|le|gt|ge|isnan|isinf|isfinite|(logical|bitwise)_not)$")
_NONE, _CALL = -1, -2


@dataclass(slots=True)
class _Operator:
    """An operator of PyTorch, and where it stands among others.

    Attributes:
        row: of ``activity.host``.
        outer: the number of the operator that it is in, or ``_NONE``.
        before: the number of the one before it in the same one; ``_CALL``: a call came last.
        places: the events that are called in it.
    """

    row: int
    outer: int
    before: int
    places: list[int]


@dataclass(frozen=True, slots=True)
class _Read:
    """What goes where a value is not read: an operator that reads it, and tests that make it.

    Attributes:
        name: of the operator, and of the outermost one that it is in.
        tests: names of the tests.
        begin_ns, end_ns: of all.
        first: the row of ``activity.host`` that it begins with.
        places: the events that are called in it.
    """

    name: str
    tests: tuple[str, ...]
    begin_ns: int
    end_ns: int
    first: int
    places: tuple[int, ...]


def propose_no_operators(facts: Facts, waits: list[int]) -> Iterator[Proposal]:
    """Proposes the program without operators that wait, such as ``aten::item``.

    They go whole, with their copies, and with the test whose result they read. So does what the
    host does from one to the next where nothing is launched in between: it reads values one by one.
    """
    by_name: dict[str, list[_Read]] = defaultdict(list)
    for read in _reads(facts, waits):
        by_name[read.name].append(read)
    groups = [[name] for name in by_name] if len(by_name) > 1 else []
    for names in [[*by_name], *groups] if by_name else []:
        reads = [read for name in names for read in by_name[name]]
        places = sorted(place for read in reads for place in read.places)
        tests = sorted({test for read in reads for test in read.tests})
        with_tests = f", with the tests whose results they read ({', '.join(tests)})"
        yield edited(
            facts,
            f"without {counted(len(reads), 'call')} of {', '.join(sorted(names))}, which wait for "
            f"the GPU{with_tests if tests else ''}",
            dict.fromkeys(places),
            "if the host does not use what the GPU has computed by then",
            gaps_without(facts, with_preludes(facts, _joined_reads(facts, reads, places))),
        )


def _reads(facts: Facts, waits: list[int]) -> list[_Read]:
    """Returns what goes with waits in operators that only wait and copy to the host."""
    operators, innermost = _operators(facts)
    sequence = facts.program.sequence
    maker = facts.account.times.made_in(facts.calls)
    host, names = facts.account.activity.host, facts.account.activity.names
    readers: dict[int, int] = {}  # by their numbers the outermost operators that they are in
    computing: set[str] = set()  # operators that compute something, too
    for place in waits:
        number, reader, outermost = innermost.get(place, _NONE), _NONE, _NONE
        while number != _NONE:
            outermost, own = number, operators[number]
            is_outermost = own.row == maker[place]
            events = [sequence[each] for each in own.places]
            if all(map(_only_returns_to_host if is_outermost else _only_reads_values, events)):
                reader = number
            number = _NONE if is_outermost else own.outer
        if reader != _NONE:
            readers[reader] = outermost
        elif outermost != _NONE:
            computing.add(names[host["name"][operators[outermost].row]])
    reads: list[_Read] = []
    for reader, outermost in sorted(readers.items()):
        name, outer = (names[host["name"][operators[x].row]] for x in (reader, outermost))
        if reader == outermost and name in computing:
            continue
        chain = [reader]
        while _is_test(facts, operators, operators[chain[-1]].before, is_inner=reader != outermost):
            chain.append(operators[chain[-1]].before)
        places = {place for number in chain for place in operators[number].places}
        first, last = operators[chain[-1]], operators[reader]
        while first.outer != _NONE and places.issuperset(operators[first.outer].places):
            first = last = operators[first.outer]
        reads.append(
            _Read(
                name if reader == outermost else f"{name} in {outer}",
                tuple(names[host["name"][operators[number].row]] for number in chain[1:]),
                int(host["begin_ns"][first.row]), int(host["end_ns"][last.row]),
                first.row, tuple(sorted(places)),
            )
        )  # fmt: skip
    return reads


def _only_reads_values(event: Event) -> bool:
    """Returns whether an event only waits, or copies a single value to the host."""
    return is_value(event) if isinstance(event, Copy) else _only_returns_to_host(event)


def _is_test(facts: Facts, operators: list[_Operator], number: int, *, is_inner: bool) -> bool:
    """Returns whether an operator right before a read makes what is read, and nothing else.

    What compares each element may be used elsewhere, too, unless all is in an operator.
    """
    if number < 0:
        return False
    activity = facts.account.activity
    name = activity.names[activity.host["name"][operators[number].row]]
    return _TESTS.match(name) is not None or (is_inner and _COMPARES.match(name) is not None)


def _operators(facts: Facts) -> tuple[list[_Operator], dict[int, int]]:
    """Returns all operators, and by the place of an event the innermost one that calls it."""
    host, calls = facts.account.activity.host, facts.calls
    place_of = {row: place for place, row in enumerate(calls.tolist()) if row != UNKNOWN}
    is_call = np.zeros(len(host), np.bool_)
    is_call[[*place_of]] = True
    rows = np.flatnonzero(is_call | (host["kind"] == OPERATOR))
    order = [is_call[rows], -host["end_ns"][rows], host["begin_ns"][rows], host["thread"][rows]]
    rows = rows[np.lexsort(order)]
    columns = (host[name][rows].tolist() for name in ("thread", "begin_ns", "end_ns"))
    operators: list[_Operator] = []
    innermost: dict[int, int] = {}
    open_: list[tuple[int, int]] = []  # numbers of operators, and when they end
    last: dict[int, int] = {}  # by operator what was last in it
    thread_before = UNKNOWN
    for row, thread, begin_ns, end_ns in zip(rows.tolist(), *columns, strict=True):
        if thread != thread_before:
            thread_before, open_ = thread, []
            last[_NONE] = _CALL
        while open_ and open_[-1][1] <= begin_ns:
            open_.pop()
        outer = open_[-1][0] if open_ else _NONE
        if row not in place_of:
            operators.append(_Operator(row, outer, last.get(outer, _NONE), []))
            last[outer] = len(operators) - 1
            open_.append((len(operators) - 1, end_ns))
            continue
        last[outer] = _CALL
        if outer != _NONE:
            innermost[place_of[row]] = outer
        for number, _ in open_:
            operators[number].places.append(place_of[row])
    return operators, innermost


def _only_returns_to_host(event: Event) -> bool:
    """Returns whether an event only waits, or copies to the host."""
    if isinstance(event, HostCall):
        return False
    return waits_for_gpu(event) or (isinstance(event, Copy) and event.kind == "d2h")


def _joined_reads(facts: Facts, reads: list[_Read], left_out: list[int]) -> Times:
    """Returns reads by thread, each extended to the next if nothing is called between."""
    host, calls = facts.account.activity.host, facts.calls
    others = np.setdiff1d(np.flatnonzero(calls != UNKNOWN), left_out)
    times = _times_of_reads(facts, reads)
    for thread, line in times.items():
        called = np.sort(host["begin_ns"][calls[others]][host["thread"][calls[others]] == thread])
        begin, end = line.end[:-1], line.begin[1:]
        is_free = np.searchsorted(called, begin) == np.searchsorted(called, end)
        is_free &= (end > begin) & (end - begin <= _READ_TOGETHER_NS)
        joined = np.where(is_free, end, begin)
        times[thread] = Intervals(line.begin, np.append(joined, line.end[-1:]), line.owner)
    return times


def _times_of_reads(facts: Facts, reads: list[_Read]) -> Times:
    """Returns the times of reads by thread, in order; ``owner``: the first row of each."""
    by_thread: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for read in sorted(reads, key=lambda each: each.begin_ns):
        thread = int(facts.account.activity.host["thread"][read.first])
        by_thread[thread].append((read.begin_ns, read.end_ns, read.first))
    return {thread: Intervals(*np.array(own, np.int64).T) for thread, own in by_thread.items()}
