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

MOST_ORDERS = 1000
_MOST_PAIRS = 5_000_000  # of operations, in all orders
_MOST_AIMED = 40  # operations that may not happen, for each of which an order is made
_LONGEST = STEP / 10  # seconds of other work in a play
_LARGEST = 1 << 20  # bytes


@dataclass(slots=True)
class Plays:
    """Plays the orders of a program's calls.

    Attributes:
        doubtful: whether an order was found for which it is not known whether all happens.
        taken: how many predictions it took.
    """

    problem: Problem
    work: Operations
    doubtful: bool = False
    taken: int = 0

    def hung(self, found: Happening) -> Stranding | None:
        """Returns an order of calls in which an operation never happens; None: none was found.

        Args:
            found: what is sure to happen in all orders.
        """
        most = min(MOST_ORDERS, 10 + _MOST_PAIRS // len(self.work.rows) ** 2)
        orders = itertools.chain(self._aimed(found), self._orders())
        for count, order in enumerate(orders, 1):
            if count > most or time.monotonic() > self.problem.deadline:
                self.doubtful = True
                return None
            hung = self._hangs(order)
            if hung is not None:
                return self._without_others(order, hung)
        return None

    def _aimed(self, found: Happening) -> Iterator[tuple[int, ...]]:
        """Yields orders in which the calls come so that an operation waits in vain."""
        rows, earlier = self.work.rows, self.work.called_before
        for number in found.missing()[:_MOST_AIMED]:
            pairs = [
                (rows[wait.of].event, rows[at].event)
                for at, wait in found.chain(number)
                if rows[wait.of].event != rows[at].event and wait.cause != "value"
            ]
            before = list(earlier)
            for first, second in pairs:
                before[second] |= 1 << first
            order = _sorted(before)
            if order is not None:
                yield order

    def _orders(self) -> Iterator[tuple[int, ...]]:
        """Yields all orders of calls, that of the sequence first.

        What delays nothing, and is not asked about, is called as soon as it can be.
        """
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

    def _hangs(self, order: tuple[int, ...]) -> Stranding | None:
        """Returns the hang of an order, if the predictor and the rules agree on it."""
        found = self._happening(order)
        missing = found.missing()
        if not missing:
            return None
        self.taken += 1
        late = self._late(order, missing)
        if not late:
            self.doubtful = True
            return None
        stranded, waiting = next(iter(late.items()))
        cause, behind = found.why(stranded)
        events = [self._shortened(event) for event in order]
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

    def _happening(self, order: tuple[int, ...]) -> Happening:
        """Returns what happens in an order; nothing waits for what its host never calls."""
        place = {event: k for k, event in enumerate(order)}
        calls: set[int] = set(order)

        def before(first: int, second: int) -> bool:
            return first in calls and place[first] < place.get(second, -1)

        while True:
            found = happening(Waits(self.work, self.problem.spec, before), self.problem.groups)
            kept = {event for event in calls if not self._never_called(event, found)}
            if kept == calls:
                return found
            calls = kept

    def _never_called(self, event: int, found: Happening) -> bool:
        """Returns whether the call of an event is never made, as its host waits for ever."""
        rows = self.work.rows
        return any(
            wait.of not in (found.ended if wait.end else found.begun)
            and (rows[wait.of].is_held_call or wait.of in self.work.started.get(k, ()))
            for k, row in enumerate(rows)
            if row.event == event
            for wait in found.rows[k]
            if wait.cause == "host"
        )

    def _late(self, order: tuple[int, ...], missing: list[int]) -> dict[int, int]:
        """Plays an order; returns the missing operations that never happen, and their blocks."""
        rows = self.work.rows
        events: list[Event] = []
        probes: dict[int, int] = {}  # of a probe its number among the transfers
        numbers: dict[int, tuple[bool, int]] = {}  # of an operation: a launch, and its number
        launches = transfers = 0
        own: dict[int, list[int]] = {}
        for k, row in enumerate(rows):
            own.setdefault(row.event, []).append(k)
        for number in order:
            events.append(self._shortened(number))
            for k in own.get(number, ()):
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
        found = {}
        for k in missing:
            is_launch, number = numbers.get(k, (False, probes.get(k, -1)))
            if is_launch:
                if blocks := late_blocks(trace, number):
                    found[k] = blocks
            elif number >= 0:
                begin, end = trace.transfer_ns[number]
                if begin < 0 or end >= FOREVER * 1e9:
                    found[k] = 0
        return found

    def _shortened(self, number: int) -> Event:
        """Returns an event whose kernels stay for ever, and that else takes little time."""
        event = self.work.sequence[number]
        if isinstance(event, Launch | GraphLaunch):
            short = Sequence([event])
            (event,) = with_launches(short, [endless(one) for one in short.launches])
            return event
        if isinstance(event, Copy | Memset):
            bytes_ = min(event.bytes, _LARGEST)
            duration = None if event.duration is None else min(event.duration, _LONGEST)
            return replace(event, bytes=bytes_, duration=duration)
        if isinstance(event, HostFunction | HostCall):
            return replace(event, duration=min(event.duration, _LONGEST))
        return event

    def _without_others(self, order: tuple[int, ...], hung: Stranding) -> Stranding:
        """Returns the same hang without launches of no group that it does not need."""
        rows = self.work.rows
        keep = {rows[k].event for group in self.problem.groups for k in group}
        keep |= {rows[k].event for first in self.work.started.values() for k in first}
        keep |= {k for k in order if not isinstance(self.work.sequence[k], Launch)}
        chain = {rows[wait.of].event for _, wait in self._happening(order).chain(hung.stranded)}
        shortest = tuple(k for k in order if k in keep | chain)
        for gone in (None, *sorted(chain - keep)):
            left = tuple(k for k in shortest if k != gone)
            shorter = self._hangs(left) if time.monotonic() < self.problem.deadline else None
            if shorter is not None and shorter.stranded == hung.stranded:
                shortest, hung = left, shorter
        return hung


def _probe(stream: object, blocking: bool, host: int) -> HostFunction:
    """Returns a host function that runs when a value, or a call, has happened."""
    if isinstance(stream, int | str):
        return HostFunction(stream=stream, non_blocking=not blocking, host=host)  # type: ignore[arg-type]
    return HostFunction(non_blocking=True, host=host)


def _gaps(events: list[Event]) -> tuple[float, ...]:
    """Returns delays with which the calls come in order, each when the last one has had effect."""
    step = min(STEP, FOREVER / (2 * len(events)))
    latest: dict[int, int] = {}
    gaps = []
    for place, event in enumerate(events, 1):
        host = getattr(event, "host", 0)
        gaps.append(step * (place - latest.get(host, 0)))
        latest[host] = place
    return tuple(gaps)


def _sorted(before: list[int]) -> tuple[int, ...] | None:
    """Returns the events in an order that they allow; None: there is a circle."""
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
