"""Which events of a program can be issued in another order, so that it computes the same."""

from __future__ import annotations

import graphlib
import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tbsched.prediction.calls import waits_for_gpu
from tbsched.program.events.streams import LEGACY_STREAM
from tbsched.program.sequence import (
    Event,
    HostCall,
    Launch,
    RecordEvent,
    Sequence,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)


class MovableUnits:
    """Events that move as one, and which of them stay before which.

    A launch moves with the waits right before it in its stream, and the records right after it.
    Work of a stream keeps its order, and so do the legacy stream and other streams. What a host
    thread calls before it waits for the GPU stays before that, and what it calls afterwards behind
    it. A wait for an event stays behind its record. Writes of a value and waits for it keep their
    order.

    Attributes:
        events: of each unit the places of its events in the sequence, ascending.
        movable: the units that launch.
    """

    def __init__(self, sequence: Sequence) -> None:
        self.events = _grouped_places(sequence)
        self.movable = [
            number
            for number, places in enumerate(self.events)
            if any(sequence[place].launches for place in places)
        ]
        unit = {place: number for number, places in enumerate(self.events) for place in places}
        order = _Dependences()
        for place, event in enumerate(sequence):
            order.add(place, event)
        pairs = {(unit[first], unit[second]) for first, second in order.pairs}
        self._pairs = sorted((first, second) for first, second in pairs if first != second)
        self._before, self._after = np.array(self._pairs, np.int64).reshape(-1, 2).T

    def __len__(self) -> int:
        return len(self.events)

    def allows(self, order: tuple[int, ...]) -> bool:
        """Returns whether an order of the units keeps each unit behind all units that it must
        follow."""
        place = np.empty(len(order), np.int64)
        place[list(order)] = np.arange(len(order))
        return bool((place[self._before] < place[self._after]).all())

    def places(self, order: Iterable[int]) -> tuple[int, ...]:
        """Returns the places of all events in the sequence, if the units have this order."""
        return tuple(place for number in order for place in self.events[number])

    def sorted_by(self, weight: Callable[[int], Any]) -> tuple[int, ...]:
        """Returns an allowed order of the units, in which units of less weight come as early as
        possible."""
        sorter = graphlib.TopologicalSorter[int](dict.fromkeys(range(len(self)), ()))
        for earlier, later in self._pairs:
            sorter.add(later, earlier)
        sorter.prepare()
        free: list[tuple[Any, int]] = []
        order = []
        while sorter.is_active():
            for number in sorter.get_ready():
                heapq.heappush(free, (weight(number), number))
            order.append(heapq.heappop(free)[1])
            sorter.done(order[-1])
        return tuple(order)


def _grouped_places(sequence: Sequence) -> list[list[int]]:
    """Returns units of events that move together, as the places of their events in the sequence: a
    launch with the waits right before it and the records right after it in its stream."""
    units: list[list[int]] = []
    last: Event | None = None
    for place, event in enumerate(sequence):
        goes_along = isinstance(last, WaitEvent) or isinstance(event, RecordEvent)
        where = _stream_and_host(event)
        if last is not None and goes_along and _stream_and_host(last) == where != (None, None):
            units[-1].append(place)
        else:
            units.append([place])
        last = event
    return units


def _stream_and_host(event: Event) -> tuple[object, object]:
    """Returns the stream and host thread of an event; (None, None): it is in no stream."""
    stream = getattr(event, "stream", None)
    return (None, None) if stream is None else (stream, getattr(event, "host", 0))


class _Dependences:
    """Pairs of places of events of which the first must stay before the second."""

    def __init__(self) -> None:
        self.pairs: set[tuple[int, int]] = set()
        self._last_in_stream: dict[object, int] = {}
        self._last_host_wait: dict[int, int] = {}  # last wait for the GPU, by host thread
        self._calls_since_wait: dict[int, list[int]] = defaultdict(list)  # and what it called since
        self._last_record: dict[int, int] = {}
        self._event_waits: dict[int, list[int]] = defaultdict(
            list
        )  # for the last record of each event
        self._last_value_use: dict[str, int] = {}  # last write of each value, or wait for it

    def add(self, place: int, event: Event) -> None:
        """Adds, for an event, the pairs (earlier place, its place) of all earlier events that must
        stay before it."""
        self._add_stream_order(
            place, getattr(event, "stream", None), isinstance(event, Synchronize | HostCall)
        )
        self._add_host_order(place, event)
        if isinstance(event, WaitEvent | Synchronize) and event.event is not None:
            self._add_pair(self._last_record.get(event.event), place)
            self._event_waits[event.event].append(place)
        if isinstance(event, WriteValue | WaitValue):
            self._add_pair(self._last_value_use.get(event.name), place)
            self._last_value_use[event.name] = place
        for recorded in _recorded(event):
            self._add_pair(self._last_record.get(recorded), place)
            for other in self._event_waits.pop(recorded, ()):
                self._add_pair(other, place)
            self._last_record[recorded] = place

    def _add_pair(self, earlier: int | None, later: int) -> None:
        """Adds a pair of places, if there is an earlier one."""
        if earlier is not None:
            self.pairs.add((earlier, later))

    def _add_stream_order(self, place: int, stream: object, only_waits: bool) -> None:
        """Adds the pair of an event and the one before it in its stream; in the legacy stream, the
        pairs with the last event of each stream. ``only_waits``: the event is a call that waits for
        a stream."""
        if stream is None or only_waits:
            return
        if stream == LEGACY_STREAM:
            for other in self._last_in_stream.values():
                self._add_pair(other, place)
            self._last_in_stream = {stream: place}
            return
        self._add_pair(
            self._last_in_stream.get(stream, self._last_in_stream.get(LEGACY_STREAM)), place
        )
        self._last_in_stream[stream] = place

    def _add_host_order(self, place: int, event: Event) -> None:
        """Adds the pairs of an event with calls of its host thread. What is called before a wait
        for the GPU stays before it, what is called after it behind."""
        host = getattr(event, "host", 0)
        self._add_pair(self._last_host_wait.get(host), place)
        # What a host call does may matter to all that comes later, such as memory that it frees.
        if waits_for_gpu(event) or isinstance(event, HostCall):
            for other in self._calls_since_wait.pop(host, ()):
                self._add_pair(other, place)
            self._last_host_wait[host] = place
        else:
            self._calls_since_wait[host].append(place)


def _recorded(event: Event) -> list[int]:
    """Returns the numbers of the CUDA events that an event records."""
    if isinstance(event, RecordEvent):
        return [event.event]
    if isinstance(event, Launch) and event.completion_event is not None:
        return [event.completion_event]
    return []


def launches_of(sequence: Sequence, places: Iterable[int]) -> tuple[int, ...]:
    """Returns the numbers of the launches of a sequence, if its events have the order of
    ``places``."""
    counts = [len(event.launches) for event in sequence]
    first = [0, *itertools.accumulate(counts)]
    return tuple(k for place in places for k in range(first[place], first[place + 1]))
