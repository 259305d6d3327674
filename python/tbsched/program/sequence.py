"""What a user asks of the GPU: kernels launched and released, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from tbsched.program.checks import integer, seconds
from tbsched.program.duration import Drawn, Float64Array

MAX_BLOCKS = 2**31 - 1
MAX_LAUNCHES = 1_000_000
# CUDA's default stream, which waits for earlier work of all streams and holds up their later work.
LEGACY_STREAM: Literal["legacy"] = "legacy"
Stream: TypeAlias = int | Literal["legacy"]
_HELD = np.empty(0, np.int64)  # the durations of blocks that are held until released
_HELD.flags.writeable = False


def _stream(owner: str, value: object) -> Stream:
    if isinstance(value, str) and value == LEGACY_STREAM:
        return LEGACY_STREAM
    return integer(owner, "stream", value, 0, 2**31 - 1)


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch.

    Its blocks stay on their SMs until a :class:`Release`, or for its duration.

    Attributes:
        blocks: thread blocks in the grid.
        threads: threads per block.
        registers: registers per thread, as the driver reports them.
        shared_memory: bytes per block, static + dynamic, without the runtime's reserve.
        local_memory: bytes per thread.
        carveout: preferred shared memory, percent of the largest configuration; None leaves the
            choice to the driver.
        cluster: blocks per thread block cluster.
        stream: launches with equal numbers run one after the other; None is a stream of its own;
            :data:`LEGACY_STREAM`, for launches with durations, is CUDA's default stream.
        priority: as in CUDA, a lower number is more urgent.
        duration: seconds that each block runs; a tuple has one number per block, and a
            :class:`Drawn` draws them; None holds the blocks until released.
        name: what plots and reports call the launch.

    Raises:
        TypeError, ValueError: naming the field, the value and the limit.
    """

    blocks: int
    threads: int
    registers: int
    shared_memory: int = 0
    local_memory: int = 0
    carveout: int | None = None
    cluster: int = 1
    stream: Stream | None = None
    priority: int = 0
    duration: float | tuple[float, ...] | Drawn | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        def check(field: str, low: int, high: int) -> None:
            number = integer("Launch", field, getattr(self, field), low, high)
            object.__setattr__(self, field, number)

        check("blocks", 1, MAX_BLOCKS)
        check("threads", 1, 1024)
        check("registers", 1, 255)
        check("shared_memory", 0, 2**24)
        check("local_memory", 0, 512 * 1024)
        if self.carveout is not None:
            check("carveout", 0, 100)
        check("cluster", 1, 16)
        if self.stream is not None:
            object.__setattr__(self, "stream", _stream("Launch", self.stream))
        check("priority", -(2**15), 2**15)
        if self.blocks % self.cluster:
            raise ValueError(
                f"Launch.cluster: {self.cluster} does not divide Launch.blocks: {self.blocks}"
            )
        object.__setattr__(self, "duration", self._checked_duration())
        if self.name is not None and not isinstance(self.name, str):
            raise TypeError(f"Launch.name: a string or None is needed, got {self.name!r}")

    def _checked_duration(self) -> float | tuple[float, ...] | Drawn | None:
        if self.duration is None or isinstance(self.duration, Drawn):
            return self.duration
        if not isinstance(self.duration, tuple):
            return seconds("Launch", "duration", self.duration)
        if len(self.duration) != self.blocks:
            raise ValueError(
                f"Launch.duration: {len(self.duration)} numbers for {self.blocks} blocks"
            )
        return tuple(
            seconds("Launch", f"duration[{block}]", value)
            for block, value in enumerate(self.duration)
        )

    def block_durations(self) -> Float64Array | None:
        """Seconds that each block runs, float64 (blocks,); None if held until released."""
        if self.duration is None:
            return None
        if isinstance(self.duration, Drawn):
            return self.duration.draw(self.blocks)
        return np.broadcast_to(np.array(self.duration, np.float64), self.blocks).copy()

    def duration_ns(self) -> npt.NDArray[np.int64]:
        """Whole nanoseconds, int64: one per block, one for all, or none if held until released."""
        if self.duration is None:
            return _HELD
        if isinstance(self.duration, float):
            return np.rint(np.array([self.duration]) * 1e9).astype(np.int64)
        durations = self.block_durations()
        assert durations is not None
        return np.rint(durations * 1e9).astype(np.int64)

    def __repr__(self) -> str:
        shown = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if field.name in _ALWAYS_SHOWN or getattr(self, field.name) != field.default
        ]
        return f"Launch({', '.join(shown)})"


_ALWAYS_SHOWN = ("blocks", "threads", "registers")
_LAUNCH_FIELDS = tuple(field.name for field in fields(Launch))
# What every record of a trace file spells out, whether or not it is the default.
_ALWAYS_WRITTEN = (*_ALWAYS_SHOWN, "shared_memory", "carveout", "cluster")


@dataclass(frozen=True, slots=True)
class Release:
    """Every block of the ``launch``-th :class:`Launch` of the sequence (from 0) exits."""

    launch: int

    def __post_init__(self) -> None:
        number = integer("Release", "launch", self.launch, 0, MAX_LAUNCHES)
        object.__setattr__(self, "launch", number)

    def __repr__(self) -> str:
        return f"Release({self.launch})"


def _check_cuda_event(item: RecordEvent | WaitEvent) -> None:
    owner = type(item).__name__
    object.__setattr__(item, "event", integer(owner, "event", item.event, 0, 2**31 - 1))
    object.__setattr__(item, "stream", _stream(owner, item.stream))


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """``cudaEventRecord``: the event happens when all work before it in the stream has ended."""

    event: int
    stream: Stream

    def __post_init__(self) -> None:
        _check_cuda_event(self)


@dataclass(frozen=True, slots=True)
class WaitEvent:
    """``cudaStreamWaitEvent``: later work of the stream waits for the event.

    It waits for the most recent :class:`RecordEvent` before it in the sequence, whatever is
    recorded later, and for nothing if there is none, as CUDA does.
    """

    event: int
    stream: Stream

    def __post_init__(self) -> None:
        _check_cuda_event(self)


Event: TypeAlias = Launch | Release | RecordEvent | WaitEvent


class Sequence:
    """An immutable, comparable, hashable list of what the host issues, in order.

    A sequence is *timed* if its launches have durations; it may then record events and wait for
    them. In any other the blocks of a launch stay until its release.

    Args:
        events: :class:`Launch`, :class:`Release`, :class:`RecordEvent` and :class:`WaitEvent`
            objects. A release names an earlier launch, each at most once.

    Raises:
        TypeError: something else is among the events.
        ValueError: a release of a launch that is not there or is released already; in a timed
            sequence a launch without a duration, or a release; in any other the legacy stream.

    Limits that depend on a device are checked where the device is known:
    :meth:`tbsched.DeviceSpec.check`.
    """

    __slots__ = ("_events", "_hash", "_launches", "_timed")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
            raise TypeError(
                f"Sequence.events: a list of Launch and Release is needed, got {events!r}"
            )
        self._events = tuple(events)
        self._timed = any(
            isinstance(event, RecordEvent | WaitEvent)
            or (isinstance(event, Launch) and event.duration is not None)
            for event in self._events
        )
        launches: list[Launch] = []
        released: set[int] = set()
        for position, event in enumerate(self._events):
            where = f"Sequence.events[{position}]"
            if isinstance(event, Launch):
                self._check_launch(where, event)
                launches.append(event)
            elif isinstance(event, Release):
                where = f"{where}: Release({event.launch})"
                if self._timed:
                    raise ValueError(
                        f"{where}: in a sequence with durations launches end by themselves"
                    )
                if event.launch >= len(launches):
                    raise ValueError(f"{where}: only {len(launches)} launches come before it")
                if event.launch in released:
                    raise ValueError(f"{where}: launch {event.launch} is released already")
                released.add(event.launch)
            elif not isinstance(event, RecordEvent | WaitEvent):
                raise TypeError(
                    f"{where}: Launch, Release, RecordEvent or WaitEvent is needed, got {event!r}"
                )
        if len(launches) > MAX_LAUNCHES:
            raise ValueError(f"Sequence.events: {len(launches)} launches, at most {MAX_LAUNCHES}")
        self._launches = tuple(launches)
        self._hash: int | None = None

    def _check_launch(self, where: str, launch: Launch) -> None:
        if self._timed and launch.duration is None:
            raise ValueError(
                f"{where}: Launch.duration: None in a sequence with durations or events; every "
                "launch needs one"
            )
        if not self._timed and launch.stream == LEGACY_STREAM:
            raise ValueError(
                f"{where}: Launch.stream: {LEGACY_STREAM!r} needs launches with durations"
            )

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
        """The launches alone; a release's number is an index into them."""
        return self._launches

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

    def __repr__(self) -> str:
        if not self._events:
            return "Sequence([])"
        return "Sequence([\n" + "".join(f"    {event!r},\n" for event in self._events) + "])"

    def to_json(self) -> str:
        """One line of JSON: the list of events as trace files hold them."""
        return json.dumps(events_to_data(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Sequence:
        """The sequence that :meth:`to_json` wrote.

        Raises:
            ValueError, TypeError: not JSON, or not a list of events; the message names the field.
        """
        if not isinstance(text, str | bytes | bytearray):
            raise TypeError(f"Sequence.from_json: text is needed, got {text!r}")
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"Sequence.from_json: not JSON: {error}") from None
        return events_from_data(data)


def events_to_data(sequence: Sequence) -> list[dict[str, Any]]:
    """The events as plain lists and dicts, fields at their default left out."""
    return [{_KEYS[type(event)]: _fields_to_data(event)} for event in sequence.events]


_KEYS: dict[type[Event], str] = {
    Launch: "launch",
    Release: "release",
    RecordEvent: "record_event",
    WaitEvent: "wait_event",
}


def _fields_to_data(event: Event) -> object:
    if isinstance(event, Release):
        return event.launch
    if not isinstance(event, Launch):
        return asdict(event)
    data = {
        field.name: getattr(event, field.name)
        for field in fields(event)
        if field.name in _ALWAYS_WRITTEN or getattr(event, field.name) != field.default
    }
    if isinstance(event.duration, Drawn):
        data["duration"] = asdict(event.duration)
    return data


def events_from_data(data: object) -> Sequence:
    """The inverse of :func:`events_to_data`; keys that it does not know are ignored.

    Raises:
        TypeError, ValueError: naming the event and the field.
    """
    if not isinstance(data, list):
        raise TypeError(f"events: a list is needed, got {type(data).__name__}")
    events: list[Event] = []
    for position, item in enumerate(data):
        kinds = [key for key in _KEYS.values() if isinstance(item, dict) and key in item]
        if len(kinds) != 1:
            raise ValueError(
                f'events[{position}]: {{"launch": …}}, {{"release": …}}, {{"record_event": …}} or '
                '{"wait_event": …} is needed'
            )
        (kind,) = kinds
        given = item[kind]
        if kind == "release":
            events.append(Release(given))
            continue
        where = f"events[{position}].{kind}"
        if kind == "launch":
            values = _known(where, given, _LAUNCH_FIELDS, _ALWAYS_SHOWN)
            if "duration" in values:
                values["duration"] = _duration(f"{where}.duration", values["duration"])
            events.append(Launch(**values))
            continue
        values = _known(where, given, _CUDA_EVENT_FIELDS, _CUDA_EVENT_FIELDS)
        events.append(RecordEvent(**values) if kind == "record_event" else WaitEvent(**values))
    return Sequence(events)


_CUDA_EVENT_FIELDS = ("event", "stream")
_DRAWN_FIELDS = tuple(field.name for field in fields(Drawn))


def _known(
    where: str, given: object, known: tuple[str, ...], needed: tuple[str, ...]
) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise TypeError(f"{where}: an object is needed, got {given!r}")
    missing = [field for field in needed if field not in given]
    if missing:
        raise ValueError(f"{where}: {missing[0]} is missing")
    return {key: given[key] for key in known if key in given}


def _duration(where: str, given: object) -> Any:
    if isinstance(given, list):
        return tuple(given)
    if isinstance(given, dict):
        return Drawn(**_known(where, given, _DRAWN_FIELDS, ("distribution", "mean")))
    return given
