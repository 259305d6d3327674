"""A literal reference: plays every order of calls, and every order in which operations go on.

A state has the calls that were made, the operations that have begun and those that are over. It
knows no queues that streams share, no copy engines and no room: operations of a few small blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import tbsched as tb
from tbsched.program.sequence import Event

# The calls in their order, launches that have started, operations that are over.
State: TypeAlias = tuple[tuple[int, ...], frozenset[int], frozenset[int]]

# What waits in a hardware queue until it may begin, a wait for a value until it is over.
IN_QUEUES = (tb.Launch, tb.WaitValue, tb.WriteValue, tb.HostFunction)


@dataclass
class Program:
    """Events for one GPU, no graphs; a launch of the group ends when all of the group is there.

    Attributes:
        events: what the hosts call.
        group: events that must happen.
        after: pairs of events; the second is called when the first has started, or is over.
        one_queue: whether all streams share one hardware queue.
    """

    events: list[Event]
    group: frozenset[int]
    after: tuple[tuple[int, int], ...] = ()
    one_queue: bool = False
    seen: set[State] = field(default_factory=set)

    def hangs(self) -> bool:
        """Returns whether in some play an event of the group never happens."""
        stack: list[State] = [((), frozenset(), frozenset())]
        while stack:
            state = stack.pop()
            if state in self.seen:
                continue
            self.seen.add(state)
            following = list(self._following(state))
            if not following and not all(self._happened(k, state) for k in self.group):
                return True
            stack += following
        return False

    def _following(self, state: State) -> Iterator[State]:
        called, started, over = state
        for k in range(len(self.events)):
            if k not in called:
                if self._may_call(k, state):
                    yield (*called, k), started, over
            elif k in over or not self._is_free(k, state):
                continue
            elif not isinstance(self.events[k], tb.Launch):
                if self._may_end(k, state):
                    yield called, started, over | {k}
            elif k not in started:
                yield called, started | {k}, over
            elif k in self.group and all(self._happened(other, state) for other in self.group):
                yield called, started, over | {k}

    def _happened(self, k: int, state: State) -> bool:
        _, started, over = state
        return k in (started if isinstance(self.events[k], tb.Launch) else over)

    def _may_call(self, k: int, state: State) -> bool:
        called, _, over = state
        if any(second == k and not self._happened(first, state) for first, second in self.after):
            return False
        for other in range(k):
            is_free = self._is_free_of_launches(other) and self._is_free_of_launches(k)
            if (
                not is_free
                and keep_order(self.events[other], self.events[k])
                and other not in called
            ):
                return False
            if (
                _waits(self.events[other])
                and _host(self.events[other]) == _host(self.events[k])
                and other not in over
            ):
                return False
        return True

    def _is_free_of_launches(self, k: int) -> bool:
        """Returns whether launches of its stream may be called before an event, or after it."""
        event = self.events[k]
        is_record = isinstance(event, tb.RecordEvent) and event.stream != tb.LEGACY_STREAM
        return isinstance(event, tb.Launch) or (
            is_record
            and not any(
                isinstance(other, tb.WaitEvent | tb.Synchronize) and other.event == event.event
                for other in self.events
            )
        )

    def _is_free(self, k: int, state: State) -> bool:
        """Returns whether an operation, or a call, waits for nothing."""
        called, started, over = state
        own = self.events[k]
        before = called[: called.index(k)]
        if self._is_empty(k, called):
            return True
        if isinstance(own, tb.HostCall | tb.Synchronize):
            return all(other in over for other in self._awaited(own, before))
        for other in before:
            earlier = self.events[other]
            if isinstance(earlier, tb.HostCall | tb.Synchronize) or self._is_empty(other, called):
                continue
            legacy = tb.LEGACY_STREAM in (_stream(own), _stream(earlier))
            blocking = _blocks(own, self.events) and _blocks(earlier, self.events)
            same = _stream(own) == _stream(earlier) is not None
            if (same or (legacy and blocking)) and other not in over:
                return False
            if (
                self.one_queue
                and isinstance(own, IN_QUEUES)
                and isinstance(earlier, IN_QUEUES)
                and other not in (started if isinstance(earlier, tb.Launch) else over)
            ):
                return False
        if isinstance(own, tb.WaitEvent):
            return self._record(own.event, before) in over
        return True

    def _is_empty(self, k: int, called: tuple[int, ...]) -> bool:
        """Returns whether an event waits for a CUDA event that nobody had recorded."""
        own = self.events[k]
        before = called[: called.index(k)]
        return isinstance(own, tb.WaitEvent) and self._record(own.event, before) is None

    def _may_end(self, k: int, state: State) -> bool:
        own = self.events[k]
        if not isinstance(own, tb.WaitValue):
            return True
        return own.value == 0 or any(
            isinstance(self.events[other], tb.WriteValue) and self.events[other].name == own.name
            for other in state[2]
        )

    def _awaited(self, call: Event, before: tuple[int, ...]) -> list[int]:
        if isinstance(call, tb.Synchronize) and call.event is not None:
            record = self._record(call.event, before)
            return [] if record is None else [record]
        if isinstance(call, tb.HostCall) and call.waits is None:
            return []
        works = [
            other
            for other in before
            if not isinstance(self.events[other], tb.HostCall | tb.Synchronize)
            and not self._is_empty(other, before)
        ]
        if call.stream is None:  # type: ignore[union-attr]
            return works
        if call.stream == tb.LEGACY_STREAM:  # type: ignore[union-attr]
            return [o for o in works if _blocks(self.events[o], self.events)]
        return [o for o in works if _stream(self.events[o]) == call.stream]  # type: ignore[union-attr]

    def _record(self, event: int, before: tuple[int, ...]) -> int | None:
        found = [
            other
            for other in before
            if isinstance(self.events[other], tb.RecordEvent) and self.events[other].event == event
        ]
        return found[-1] if found else None


def keep_order(first: Event, second: Event) -> bool:
    """Returns whether two events are called in the order of the sequence."""
    if _host(first) != _host(second):
        return False
    launches = isinstance(first, tb.Launch) and isinstance(second, tb.Launch)
    if _stream(first) == _stream(second) is not None and not launches:
        return True
    if _waits(first) or _waits(second):
        return True
    return bool(_cuda_events(first) & _cuda_events(second))


def _cuda_events(event: Event) -> set[int]:
    nodes = event.graph.nodes if isinstance(event, tb.GraphLaunch) else (event,)
    return {getattr(node, "event", None) for node in nodes} - {None}


def _waits(event: Event) -> bool:
    if isinstance(event, tb.HostCall):
        return event.waits is not None
    if isinstance(event, tb.Copy):
        return event.blocking or not event.pinned
    return isinstance(event, tb.Synchronize)


def _host(event: Event) -> int:
    return getattr(event, "host", 0)


def _stream(event: Event) -> object:
    return (
        None if isinstance(event, tb.HostCall | tb.Synchronize) else getattr(event, "stream", None)
    )


def _blocks(event: Event, events: list[Event]) -> bool:
    """Returns whether the stream of an event and the legacy stream wait for each other."""
    if _stream(event) is None:
        return not getattr(event, "non_blocking", False)
    return not any(
        getattr(other, "non_blocking", False)
        for other in events
        if _stream(other) == _stream(event)
    )
