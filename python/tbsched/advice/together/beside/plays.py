"""Orders of calls in which an operation of a group never happens, played by the predictor.

Kernels stay for ever, that is, longer than all else takes. An operation that begins only after one
of them has ended would never begin.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tbsched.advice.together.above import endless
from tbsched.advice.together.beside.operations import Operations
from tbsched.advice.together.beside.waits import Happening, Waits, happening
from tbsched.advice.together.problem import Problem, Stranding, late_blocks
from tbsched.advice.together.ranks.work import mask, members
from tbsched.prediction.predict import predict
from tbsched.prediction.together.search import FOREVER, STEP
from tbsched.program.sequence import (
    Copy,
    Event,
    GraphLaunch,
    HostCall,
    HostFunction,
    Launch,
    Memset,
    Sequence,
    with_launches,
)

MAX_ORDERS = 1000
_MAX_PAIRS = 5_000_000  # of operations, in all orders
_MAX_AIMED_ORDERS = 40  # operations that may not happen, for each of which an order is made
_MAX_OTHER_SECONDS = STEP / 10  # seconds of other work in a play
_MAX_BYTES = 1 << 20  # bytes


@dataclass(slots=True)
class Plays:
    """Plays the orders of a program's calls.

    Attributes:
        is_uncertain: whether an order was found for which it is not known whether all happens.
        predictions: how many predictions it took.
    """

    problem: Problem
    work: Operations
    is_uncertain: bool = False
    predictions: int = 0

    def find_hang(self, sure: Happening) -> Stranding | None:
        """Plays orders of calls until an operation never happens, and returns that hang as a
        witness; None: none was found.

        Args:
            sure: what is sure to happen in all orders.
        """
        most = min(MAX_ORDERS, 10 + _MAX_PAIRS // len(self.work.rows) ** 2)
        orders = itertools.chain(self._aimed_orders(sure), self._orders())
        for count, order in enumerate(orders, 1):
            if count > most or time.monotonic() > self.problem.deadline:
                self.is_uncertain = True
                return None
            hung = self._hang_of_order(order)
            if hung is not None:
                return self._shrunk(order, hung)
        return None

    def _aimed_orders(self, sure: Happening) -> Iterator[tuple[int, ...]]:
        """Yields orders of calls that are likely to hang: in each, what an operation waits for is
        called before that operation.

        Args:
            sure: what is sure to happen in all orders.
        """
        rows, earlier = self.work.rows, self.work.called_before
        for number in sure.missing()[:_MAX_AIMED_ORDERS]:
            pairs = [
                (rows[wait.awaited].event, rows[waiter].event)
                for waiter, wait in sure.chain(number)
                if rows[wait.awaited].event != rows[waiter].event and wait.cause != "value"
            ]
            before = list(earlier)
            for first, second in pairs:
                before[second] |= 1 << first
            order = _topological_order(before)
            if order is not None:
                yield order

    def _orders(self) -> Iterator[tuple[int, ...]]:
        """Yields all orders of calls that the program allows, that of the sequence first. An event
        that delays nothing, and is in no group, is called as soon as it can be: its place makes no
        difference."""
        earlier = self.work.called_before
        every = mask(range(len(earlier)))
        asked = {self.work.rows[k].event for group in self.problem.groups for k in group}
        prompt = mask(self.work.silent - asked)

        def longer(order: tuple[int, ...], called: int) -> Iterator[tuple[int, ...]]:
            """Yields all orders of calls that begin with ``order``."""
            if called == every:
                yield order
            free = [k for k in members(every & ~called) if not earlier[k] & ~called]
            first = [k for k in free if prompt >> k & 1]
            for k in first[:1] or free:
                yield from longer((*order, k), called | 1 << k)

        return longer((), 0)

    def _hang_of_order(self, order: tuple[int, ...]) -> Stranding | None:
        """Returns the hang if calls have this order, as a witness; None: there is none, or the
        rules say that there is one and the predictor does not."""
        happening_ = self._happening_in(order)
        missing = happening_.missing()
        if not missing:
            return None
        self.predictions += 1
        late = self._never_happening(order, missing)
        if not late:
            self.is_uncertain = True
            return None
        stranded, waiting = next(iter(late.items()))
        cause, behind = happening_.why(stranded)
        events = [self._quick_event(event) for event in order]
        place = {event: k for k, event in enumerate(order)}
        launches = [
            k for k, row in enumerate(self.work.rows) if row.is_launch and row.event in place
        ]
        launches.sort(key=lambda k: place[self.work.rows[k].event])
        state = self.problem.spec.initial_states(self.problem.policy)[0]
        return Stranding(
            Sequence(events), None, tuple(launches), state, stranded, cause, behind, _gaps(events),
            waiting,
        )  # fmt: skip

    def _happening_in(self, order: tuple[int, ...]) -> Happening:
        """Returns which operations happen if calls have this order. A host thread that hangs calls
        nothing more."""
        place = {event: k for k, event in enumerate(order)}
        calls: set[int] = set(order)

        def before(first: int, second: int) -> bool:
            """Returns whether the first event is called before the second in this order."""
            return first in calls and place[first] < place.get(second, -1)

        while True:
            sure = happening(Waits(self.work, self.problem.spec, before), self.problem.groups)
            still_called = {event for event in calls if not self._never_called(event, sure)}
            if still_called == calls:
                return sure
            calls = still_called

    def _never_called(self, event: int, sure: Happening) -> bool:
        """Returns whether an event is never called, because its host waits for ever."""
        rows = self.work.rows
        return any(
            wait.awaited not in (sure.ended if wait.for_end else sure.begun)
            and (rows[wait.awaited].is_held_call or wait.awaited in self.work.started.get(k, ()))
            for k, row in enumerate(rows)
            if row.event == event
            for wait in sure.rows[k]
            if wait.cause == "host"
        )

    def _never_happening(self, order: tuple[int, ...], missing: list[int]) -> dict[int, int]:
        """Plays an order, and returns which of the missing operations never happen: their numbers,
        each with how many of its blocks never start."""
        rows = self.work.rows
        events: list[Event] = []
        probes: dict[int, int] = {}  # of a probe its number among the transfers
        numbers: dict[int, tuple[bool, int]] = {}  # of an operation: a launch, and its number
        launches = transfers = 0
        numbers_of: dict[int, list[int]] = {}
        for k, row in enumerate(rows):
            numbers_of.setdefault(row.event, []).append(k)
        for number in order:
            events.append(self._quick_event(number))
            for k in numbers_of.get(number, ()):
                if rows[k].is_launch:
                    numbers[k] = (True, launches)
                    launches += 1
                elif rows[k].is_node or isinstance(rows[k].work, Copy | Memset | HostFunction):
                    numbers[k] = (False, transfers)
                    transfers += 1
                elif k in missing:  # values and calls have no times
                    events.append(_probe(rows[k].stream, rows[k].blocking, rows[k].host))
                    probes[k] = transfers
                    transfers += 1
        spec, policy = self.problem.spec, self.problem.policy
        trace = predict(Sequence(events), spec, policy, host=_gaps(events))
        assert trace.transfer_ns is not None
        never = {}
        for k in missing:
            is_launch, number = numbers.get(k, (False, probes.get(k, -1)))
            if is_launch:
                if blocks := late_blocks(trace, number):
                    never[k] = blocks
            elif number >= 0:
                begin, end = trace.transfer_ns[number]
                if begin < 0 or end >= FOREVER * 1e9:
                    never[k] = 0
        return never

    def _quick_event(self, number: int) -> Event:
        """Returns an event of the program as it is played: its kernels never end, and all other
        work takes little time."""
        event = self.work.sequence[number]
        if isinstance(event, Launch | GraphLaunch):
            short = Sequence([event])
            (event,) = with_launches(short, [endless(launch) for launch in short.launches])
            return event
        if isinstance(event, Copy | Memset):
            bytes_ = min(event.bytes, _MAX_BYTES)
            duration = None if event.duration is None else min(event.duration, _MAX_OTHER_SECONDS)
            return replace(event, bytes=bytes_, duration=duration)
        if isinstance(event, HostFunction | HostCall):
            return replace(event, duration=min(event.duration, _MAX_OTHER_SECONDS))
        return event

    def _shrunk(self, order: tuple[int, ...], hung: Stranding) -> Stranding:
        """Returns the same hang without launches, of no group, that it does not need."""
        rows = self.work.rows
        keep = {rows[k].event for group in self.problem.groups for k in group}
        keep |= {rows[k].event for first in self.work.started.values() for k in first}
        keep |= {k for k in order if not isinstance(self.work.sequence[k], Launch)}
        chain = {
            rows[wait.awaited].event for _, wait in self._happening_in(order).chain(hung.stranded)
        }
        shortest = tuple(k for k in order if k in keep | chain)
        for gone in (None, *sorted(chain - keep)):
            left = tuple(k for k in shortest if k != gone)
            shorter = (
                self._hang_of_order(left) if time.monotonic() < self.problem.deadline else None
            )
            if shorter is not None and shorter.stranded == hung.stranded:
                shortest, hung = left, shorter
        return hung


def _probe(stream: object, blocking: bool, host: int) -> HostFunction:
    """Returns a host function that is put into a stream to show, by when it runs, that a value or a
    call before it has happened."""
    if isinstance(stream, int | str):
        return HostFunction(stream=stream, non_blocking=not blocking, host=host)  # type: ignore[arg-type]
    return HostFunction(non_blocking=True, host=host)


def _gaps(events: list[Event]) -> tuple[float, ...]:
    """Returns delays of calls, in seconds, that are so long that each call is made after the one
    before has had its effect."""
    step = min(STEP, FOREVER / (2 * len(events)))
    latest: dict[int, int] = {}
    gaps = []
    for place, event in enumerate(events, 1):
        host = getattr(event, "host", 0)
        gaps.append(step * (place - latest.get(host, 0)))
        latest[host] = place
    return tuple(gaps)


def _topological_order(before: list[int]) -> tuple[int, ...] | None:
    """Returns the numbers of the events in an order that the masks allow; None: there is a cycle.
    ``before``: of each event a mask of those before it."""
    order: list[int] = []
    called = 0
    while len(order) < len(before):
        free = (k for k in range(len(before)) if not called >> k & 1 and not before[k] & ~called)
        first = next(free, None)
        if first is None:
            return None
        order.append(first)
        called |= 1 << first
    return tuple(order)
