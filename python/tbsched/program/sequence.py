"""What a user asks of the GPU: kernels launched and released, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, assert_never, overload

from tbsched import parsing
from tbsched.errors import shown
from tbsched.program.events.cuda_events import RecordEvent, WaitEvent
from tbsched.program.events.graph import Conditional, Graph, GraphLaunch
from tbsched.program.events.graph_memory import MemAlloc, MemFree
from tbsched.program.events.host_call import HostCall
from tbsched.program.events.host_function import HostFunction
from tbsched.program.events.kinds import KINDS, Control, Event, event_from_data, event_to_data
from tbsched.program.events.launch import MAX_BLOCKS, MAX_LAUNCHES, Launch
from tbsched.program.events.memory_values import WaitValue, WriteValue
from tbsched.program.events.release import Release
from tbsched.program.events.streams import LEGACY_STREAM, Stream
from tbsched.program.events.synchronize import Synchronize
from tbsched.program.events.transfers import (
    Copy,
    Memset,
    Numbered,
    Transfer,
    transfer_key,
)
from tbsched.program.partition import Partition
from tbsched.shown import Shown

_EVENTS = tuple(kind.event for kind in KINDS)
_REPR_EVENTS = 50  # longer sequences are abbreviated

__all__ = [
    "LEGACY_STREAM",
    "MAX_BLOCKS",
    "MAX_LAUNCHES",
    "Conditional",
    "Copy",
    "Event",
    "Graph",
    "GraphLaunch",
    "HostCall",
    "HostFunction",
    "Launch",
    "MemAlloc",
    "MemFree",
    "Memset",
    "RecordEvent",
    "Release",
    "Sequence",
    "Stream",
    "Synchronize",
    "WaitEvent",
    "WaitValue",
    "WriteValue",
    "events_from_data",
    "events_to_data",
    "with_durations",
    "with_launches",
]


class Sequence(Shown):
    """What the host issues, in order: an immutable list of events that is compared by value.

    A sequence is *timed* if its launches have durations. It may then record CUDA events, wait for
    them, and copy memory. A sequence without durations is *held*: the blocks of a launch stay on
    their SMs until a :class:`Release` of the launch.

    Limits that depend on a device are checked where the device is known:
    :meth:`tbsched.DeviceSpec.check`.

    Args:
        events: :class:`Launch`, :class:`Release`, :class:`RecordEvent`, :class:`WaitEvent`,
            :class:`GraphLaunch`, :class:`Copy`, :class:`Memset`, :class:`Synchronize`,
            :class:`HostFunction`, :class:`HostCall`, :class:`WriteValue` and :class:`WaitValue`
            objects. A launch can be released once, after it was launched.

    Raises:
        TypeError: something else is among the events.
        ValueError: a release of a launch that is not there or is released already; a launch without
            a duration, or a release, in a timed sequence; the legacy stream in a held one; in a
            timed one, work that does not agree whether its stream is non-blocking, or on its
            partition; memory that a graph allocates while it is allocated, or frees while it is
            not.

    Example:
        >>> sequence = tb.Sequence([tb.Launch(8, 64, 32), tb.Launch(4, 64, 32), tb.Release(0)])
        >>> len(sequence), len(sequence.launches), sequence.timed
        (3, 2, False)
        >>> sequence[:2].events == sequence.launches
        True
    """

    __slots__ = ("_events", "_hash", "_launches", "_timed")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
            raise TypeError(
                f"Sequence.events: a list of Launch and Release is needed, got {shown(events)}"
            )
        self._events = tuple(_checked_events(events))
        self._timed = _is_timed(self._events)
        self._launches = tuple(_checked_launches(self._events, self._timed))
        if len(self._launches) > MAX_LAUNCHES:
            raise ValueError(
                f"Sequence.events: {len(self._launches)} launches, at most {MAX_LAUNCHES}"
            )
        self._hash: int | None = None

    @property
    def timed(self) -> bool:
        """Whether launches end by themselves, after their durations."""
        return self._timed

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, in order."""
        return self._events

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches alone, in order; ``Release(k)`` releases ``launches[k]``."""
        return self._launches

    @property
    def transfers(self) -> tuple[Numbered, ...]:
        """Returns the copies, memsets and host functions, and all nodes that are no launches.

        In order. So nodes that record CUDA events, or wait for them, are among these.
        """
        operations: list[Numbered] = []
        for event in self._events:
            if isinstance(event, Transfer):
                operations.append(event)
            elif isinstance(event, GraphLaunch):
                operations += event.graph.transfers
        return tuple(operations)

    @property
    def gpus(self) -> int:
        """Returns how many GPUs it needs: one more than the highest index among its events.

        Example:
            >>> tb.Sequence([tb.Launch(8, 64, 32, gpu=1, duration=1e-5)]).gpus
            2
        """
        highest = 0
        for event in self._events:
            highest = max(highest, getattr(event, "gpu", 0), getattr(event, "peer", None) or 0)
        return highest + 1

    @property
    def launch_gpus(self) -> tuple[int, ...]:
        """Returns the GPU of each of :attr:`launches`; that of a node is its graph's.

        Example:
            >>> graph = tb.Graph([tb.Launch(8, 64, 32, duration=1e-5)] * 2)
            >>> tb.Sequence([graph.launch(gpu=1)]).launch_gpus
            (1, 1)
        """
        gpus: list[int] = []
        for event in self._events:
            gpus += [getattr(event, "gpu", 0)] * len(event.launches)
        return tuple(gpus)

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence:
        if isinstance(index, slice):
            return Sequence(self._events[index])
        return self._events[index]

    def __eq__(self, other: object) -> bool:
        return self._events == other._events if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._events)
        return self._hash

    def __reduce__(self) -> tuple[type[Sequence], tuple[tuple[Event, ...]]]:
        # The hash is another in another process.
        return type(self), (self._events,)

    def __repr__(self) -> str:
        return self.to_source() if len(self) <= _REPR_EVENTS else Shown.__repr__(self)

    def to_source(self) -> str:
        """Returns the Python expression that makes it, a line per event.

        Example:
            >>> print(tb.Sequence([tb.Launch(132, 1024, 32), tb.Release(0)]).to_source())
            Sequence([
                Launch(blocks=132, threads=1024, registers=32),
                Release(0),
            ])
        """
        if not self._events:
            return "Sequence([])"
        return "Sequence([\n" + "".join(f"    {event!r},\n" for event in self._events) + "])"

    def to_json(self) -> str:
        """Returns one line of JSON: the list of events as trace files hold them.

        Example:
            >>> sequence = tb.Sequence([tb.Launch(132, 1024, 32), tb.Release(0)])
            >>> tb.Sequence.from_json(sequence.to_json()) == sequence
            True
        """
        return json.dumps(events_to_data(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Sequence:
        """Returns the sequence that :meth:`to_json` wrote.

        Raises:
            ValueError, TypeError: not JSON, or not a list of events; the message names the field.

        Example:
            >>> text = '[{"launch": {"blocks": 8, "threads": 64, "registers": 32}}]'
            >>> tb.Sequence.from_json(text)[0]
            Launch(blocks=8, threads=64, registers=32)
        """
        if not isinstance(text, str | bytes | bytearray):
            raise TypeError(f"Sequence.from_json: text is needed, got {shown(text)}")
        try:
            data = parsing.json_value(
                text.removeprefix("\ufeff") if isinstance(text, str) else text
            )
        except ValueError as error:
            raise ValueError(f"Sequence.from_json: not JSON: {error}") from None
        return events_from_data(data)


def _checked_events(events: Iterable[Event]) -> Iterator[Event]:
    """Yields the events, each checked before the next is asked for."""
    for position, event in enumerate(events):
        if not isinstance(event, _EVENTS):
            names = [kind.__name__ for kind in _EVENTS]
            raise TypeError(
                f"Sequence.events[{position}]: {', '.join(names[:-1])} or {names[-1]} is needed, "
                f"got {shown(event)}"
            )
        yield event


def _is_timed(events: tuple[Event, ...]) -> bool:
    """Returns whether an event among them needs launches with durations."""
    timed = False
    for event in events:
        if isinstance(event, Launch):
            timed |= event.duration is not None
        elif isinstance(event, GraphLaunch | Transfer | Control):
            timed = True
        elif not isinstance(event, Release):
            assert_never(event)
    return timed


def _checked_launches(events: tuple[Event, ...], timed: bool) -> list[Launch]:
    """Returns the launches of the events, after it has checked that each event may stand where it
    does."""
    launches: list[Launch] = []
    released: set[int] = set()
    kinds = _KindsOfStreams()
    allocated: set[tuple[int, str]] = set()  # GPU and name
    any_timing = any(isinstance(event, RecordEvent) and event.timing for event in events)
    have_timing: dict[int, bool] = {}  # CUDA event: whether its records write a time stamp
    for position, event in enumerate(events):
        if isinstance(event, Launch):
            wrong = _wrong_launch(event, timed)
            if timed and wrong is None:
                wrong = kinds.wrong(event)
        elif isinstance(event, GraphLaunch | Transfer):
            wrong = kinds.wrong(event)
            if isinstance(event, GraphLaunch) and wrong is None:
                wrong = _wrong_memory(event, allocated)
        elif isinstance(event, Release):
            wrong = _wrong_release(event.launch, timed, len(launches), released)
            released.add(event.launch)
        elif isinstance(event, RecordEvent | WaitEvent) and event.stream is None:
            wrong = f"{type(event).__name__}.stream: None, which is only for nodes of graphs"
        elif isinstance(event, Control):
            wrong = None
        else:
            assert_never(event)
        if any_timing and wrong is None:
            wrong = _wrong_timing(event, have_timing)
        if wrong is not None:
            raise ValueError(f"Sequence.events[{position}]: {wrong}")
        launches += event.launches
    return launches


def _wrong_timing(event: Event, have_timing: dict[int, bool]) -> str | None:
    """Returns a sentence about a CUDA event that has timing in some of its records only; None:
    there is none. ``have_timing``: what earlier events say, to which this one is added."""
    nodes = event.graph.nodes if isinstance(event, GraphLaunch) else (event,)
    for node in nodes:
        if isinstance(node, RecordEvent):
            number, has_timing = node.event, node.timing
        elif isinstance(node, Launch) and node.completion_event is not None:
            number, has_timing = node.completion_event, False
        else:
            continue
        if have_timing.setdefault(number, has_timing) != has_timing:
            return (
                f"event {number}: timing is {has_timing} here, and {not has_timing} in an earlier "
                "record; an event has timing in all of its records or in none, and that of a "
                "completion_event or of a node has none"
            )
    return None


def _wrong_memory(launched: GraphLaunch, allocated: set[tuple[int, str]]) -> str | None:
    """Returns a sentence about what CUDA refuses of the memory of a graph; None: nothing.
    ``allocated``: what is allocated so far, which is updated."""
    for node in launched.graph.memory:
        of_gpu = (launched.gpu, node.name)
        if isinstance(node, MemAlloc):
            if of_gpu in allocated:
                return f"MemAlloc.name: {shown(node.name)} is allocated and not yet freed"
            allocated.add(of_gpu)
        elif of_gpu in allocated:
            allocated.remove(of_gpu)
        else:
            return f"MemFree.name: {shown(node.name)} is not allocated"
    return None


def _wrong_launch(launch: Launch, timed: bool) -> str | None:
    """Returns why a sequence cannot have this launch; None if it can."""
    if timed and launch.duration is None:
        return (
            "Launch.duration: None in a sequence with durations or events; every launch needs one"
        )
    if not timed and launch.stream == LEGACY_STREAM:
        return f"Launch.stream: {LEGACY_STREAM!r} needs launches with durations"
    return None


_InStream: TypeAlias = Launch | GraphLaunch | Transfer


class _KindsOfStreams:
    """Properties that all work of a stream must share, with the event that set them first."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, Stream], _InStream] = {}
        self._first_with_partition: dict[tuple[int, Stream], Launch | GraphLaunch] = {}

    def wrong(self, event: _InStream) -> str | None:
        """Returns the conflict of an event with the earlier kind of its stream, if there is one."""
        stream = event.stream
        if stream is None:
            return None
        of_gpu = (event.gpu, stream)
        first = self._first.setdefault(of_gpu, event)
        if first.non_blocking != event.non_blocking:
            return (
                f"{type(event).__name__}.non_blocking: {event.non_blocking} in stream {stream}, "
                f"of which an earlier {_word_of(first)} has {first.non_blocking}; all work of a "
                "stream agrees"
            )
        if isinstance(event, Transfer):  # it takes no SM
            return None
        before = self._first_with_partition.setdefault(of_gpu, event)
        if _partition_of(before) != _partition_of(event):
            return (
                f"{type(event).__name__}.partition: {shown(_partition_of(event))} in stream "
                f"{stream}, of which an earlier launch has {shown(_partition_of(before))}; all "
                "launches of a stream agree"
            )
        return None


def check_streams(launches: Iterable[tuple[str, Launch]]) -> None:
    """Checks that launches, each with its name, agree on their streams as in a timed sequence.

    Raises:
        ValueError: naming the launch, the field and the stream.
    """
    kinds = _KindsOfStreams()
    for name, launch in launches:
        if wrong := kinds.wrong(launch):
            raise ValueError(f"{name}: {wrong}")


def _word_of(event: _InStream) -> str:
    return transfer_key(event).replace("_", " ") if isinstance(event, Transfer) else "launch"


def _partition_of(event: Launch | GraphLaunch) -> Partition | None:
    """Returns the one of its stream; a graph is launched in a stream of the whole GPU."""
    return event.partition if isinstance(event, Launch) else None


def _wrong_release(launch: int, timed: bool, launches: int, released: set[int]) -> str | None:
    """Returns why a release cannot come here; None if it can."""
    if timed:
        return f"Release({launch}): in a sequence with durations launches end by themselves"
    if launch >= launches:
        return f"Release({launch}): only {launches} launches come before it"
    if launch in released:
        return f"Release({launch}): launch {launch} is released already"
    return None


def with_launches(sequence: Sequence, launches: Iterable[Launch]) -> Sequence:
    """Returns the sequence with other launches in the place of its own, in their order.

    Raises:
        ValueError: not as many.
    """
    new_launches = tuple(launches)
    if len(new_launches) != len(sequence.launches):
        raise ValueError(f"launches: {len(new_launches)} for {len(sequence.launches)}")
    remaining = iter(new_launches)

    def changed(event: Event) -> Event:
        if isinstance(event, Launch):
            return next(remaining)
        if isinstance(event, GraphLaunch):
            graph = event.graph
            nodes = [next(remaining) if isinstance(n, Launch) else n for n in graph.nodes]
            return replace(event, graph=graph.with_nodes(nodes))
        if isinstance(event, Release | Transfer | Control):
            return event
        assert_never(event)

    return Sequence([changed(event) for event in sequence])


def with_durations(
    sequence: Sequence, launches: Iterable[Launch], transfers: Iterable[Transfer] = ()
) -> Sequence:
    """Returns :func:`with_launches`, for launches that differ in their durations alone.

    A graph that is launched again is still the same one. ``transfers`` take the places of copies
    and memsets that are no nodes; those for which there is none stay.
    """
    remaining = iter(transfers)
    changed = [
        next(remaining, event) if isinstance(event, Copy | Memset) else event
        for event in with_launches(sequence, launches)
    ]
    return Sequence([
        replace(event, _executable=unchanged.graph)
        if isinstance(event, GraphLaunch) and isinstance(unchanged, GraphLaunch)
        else event
        for event, unchanged in zip(changed, sequence, strict=True)
    ])  # fmt: skip


def events_to_data(sequence: Sequence) -> list[dict[str, Any]]:
    """Returns the events as plain lists and dicts, fields at their default left out."""
    return [event_to_data(event) for event in sequence]


def events_from_data(data: object) -> Sequence:
    """Returns the inverse of :func:`events_to_data`.

    Raises:
        TypeError, ValueError: naming the event and the field.
    """
    if not isinstance(data, list):
        raise TypeError(f"events: a list is needed, got {type(data).__name__}")
    return Sequence(
        event_from_data(f"events[{position}]", item) for position, item in enumerate(data)
    )
