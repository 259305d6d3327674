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


class Units:
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
        self.events = _together(sequence)
        self.movable = [
            number
            for number, places in enumerate(self.events)
            if any(sequence[place].launches for place in places)
        ]
        unit = {place: number for number, places in enumerate(self.events) for place in places}
        order = _Order()
        for place, event in enumerate(sequence):
            order.add(place, event)
        pairs = {(unit[a], unit[b]) for a, b in order.pairs}
        self._pairs = sorted((a, b) for a, b in pairs if a != b)
        self._before, self._after = np.array(self._pairs, np.int64).reshape(-1, 2).T

    def __len__(self) -> int:
        return len(self.events)

    def keeps(self, order: tuple[int, ...]) -> bool:
        """Returns whether all units are behind those that they must follow."""
        place = np.empty(len(order), np.int64)
        place[list(order)] = np.arange(len(order))
        return bool((place[self._before] < place[self._after]).all())

    def places(self, order: Iterable[int]) -> tuple[int, ...]:
        """Returns the places of all events, by an order of the units."""
        return tuple(place for number in order for place in self.events[number])

    def sorted_by(self, weight: Callable[[int], Any]) -> tuple[int, ...]:
        """Returns units in topological order, those of least weight first."""
        left = graphlib.TopologicalSorter[int](dict.fromkeys(range(len(self)), ()))
        for a, b in self._pairs:
            left.add(b, a)
        left.prepare()
        free: list[tuple[Any, int]] = []
        order = []
        while left.is_active():
            for number in left.get_ready():
                heapq.heappush(free, (weight(number), number))
            order.append(heapq.heappop(free)[1])
            left.done(order[-1])
        return tuple(order)


def _together(sequence: Sequence) -> list[list[int]]:
    """Returns events in units that move together: with their waits and records."""
    units: list[list[int]] = []
    last: Event | None = None
    for place, event in enumerate(sequence):
        goes_along = isinstance(last, WaitEvent) or isinstance(event, RecordEvent)
        if last is not None and goes_along and _called(last) == _called(event) != (None, None):
            units[-1].append(place)
        else:
            units.append([place])
        last = event
    return units


def _called(event: Event) -> tuple[object, object]:
    stream = getattr(event, "stream", None)
    return (None, None) if stream is None else (stream, getattr(event, "host", 0))


class _Order:
    """Pairs of places of events of which the first stays before the second."""

    def __init__(self) -> None:
        self.pairs: set[tuple[int, int]] = set()
        self._of_stream: dict[object, int] = {}
        self._wait: dict[int, int] = {}  # last wait for the GPU, by host thread
        self._since: dict[int, list[int]] = defaultdict(list)  # and what it called since
        self._record: dict[int, int] = {}
        self._waits: dict[int, list[int]] = defaultdict(list)  # for the last record of each event
        self._of_value: dict[str, int] = {}  # last write of each value, or wait for it

    def add(self, place: int, event: Event) -> None:
        """Notes what the event stays behind."""
        self._in_stream(
            place, getattr(event, "stream", None), isinstance(event, Synchronize | HostCall)
        )
        self._by_host(place, event)
        if isinstance(event, WaitEvent | Synchronize) and event.event is not None:
            self._behind(self._record.get(event.event), place)
            self._waits[event.event].append(place)
        if isinstance(event, WriteValue | WaitValue):
            self._behind(self._of_value.get(event.name), place)
            self._of_value[event.name] = place
        for recorded in _recorded(event):
            self._behind(self._record.get(recorded), place)
            for other in self._waits.pop(recorded, ()):
                self._behind(other, place)
            self._record[recorded] = place

    def _behind(self, one: int | None, other: int) -> None:
        if one is not None:
            self.pairs.add((one, other))

    def _in_stream(self, place: int, stream: object, only_waits: bool) -> None:
        """Adds the dependence of an event on the one before it in its stream."""
        if stream is None or only_waits:
            return
        if stream == LEGACY_STREAM:
            for other in self._of_stream.values():
                self._behind(other, place)
            self._of_stream = {stream: place}
            return
        self._behind(self._of_stream.get(stream, self._of_stream.get(LEGACY_STREAM)), place)
        self._of_stream[stream] = place

    def _by_host(self, place: int, event: Event) -> None:
        """Adds the dependences between a host's calls that wait and its other calls."""
        host = getattr(event, "host", 0)
        self._behind(self._wait.get(host), place)
        # What a host call does may matter to all that comes later, such as memory that it frees.
        if waits_for_gpu(event) or isinstance(event, HostCall):
            for other in self._since.pop(host, ()):
                self._behind(other, place)
            self._wait[host] = place
        else:
            self._since[host].append(place)


def _recorded(event: Event) -> list[int]:
    """Returns the CUDA events that an event records."""
    if isinstance(event, RecordEvent):
        return [event.event]
    if isinstance(event, Launch) and event.completion_event is not None:
        return [event.completion_event]
    return []


def launches_of(sequence: Sequence, places: Iterable[int]) -> tuple[int, ...]:
    """Returns the numbers of launches, by an order of the events."""
    counts = [len(event.launches) for event in sequence]
    first = [0, *itertools.accumulate(counts)]
    return tuple(k for place in places for k in range(first[place], first[place + 1]))
