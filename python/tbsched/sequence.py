"""What a user asks of the GPU: kernels launched and released, in order."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, SupportsIndex, TypeAlias, cast, overload

MAX_BLOCKS = 2**31 - 1
MAX_LAUNCHES = 1_000_000


def _integer(owner: str, field: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool):
        raise TypeError(f"{owner}.{field}: an integer is needed, got {value!r}")
    try:
        number = operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise TypeError(f"{owner}.{field}: an integer is needed, got {value!r}") from None
    if not low <= number <= high:
        raise ValueError(f"{owner}.{field}: {number} is outside {low}..{high}")
    return number


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch. Its blocks stay on their SMs until a :class:`Release`.

    Attributes:
        blocks: thread blocks in the grid.
        threads: threads per block.
        registers: registers per thread, as the driver reports them.
        shared_memory: bytes per block, static + dynamic, without the runtime's reserve.
        local_memory: bytes per thread.
        carveout: preferred shared memory, percent of the largest configuration; None leaves the
            choice to the driver.
        cluster: blocks per thread block cluster.
        stream: launches with equal numbers run one after the other; None is a stream of its own.
        priority: as in CUDA, a lower number is more urgent.
        duration: seconds that each block runs; None holds it until released.
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
    stream: int | None = None
    priority: int = 0
    duration: float | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        def check(field: str, low: int, high: int) -> None:
            number = _integer("Launch", field, getattr(self, field), low, high)
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
            check("stream", 0, 2**31 - 1)
        check("priority", -(2**15), 2**15)
        if self.blocks % self.cluster:
            raise ValueError(
                f"Launch.cluster: {self.cluster} does not divide Launch.blocks: {self.blocks}"
            )
        if self.duration is not None:
            if isinstance(self.duration, bool) or not isinstance(self.duration, int | float):
                raise TypeError(
                    f"Launch.duration: seconds or None is needed, got {self.duration!r}"
                )
            if not 0 <= self.duration <= 1e9:
                raise ValueError(f"Launch.duration: {self.duration!r} is outside 0..1e9 seconds")
            object.__setattr__(self, "duration", float(self.duration))
        if self.name is not None and not isinstance(self.name, str):
            raise TypeError(f"Launch.name: a string or None is needed, got {self.name!r}")

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
        number = _integer("Release", "launch", self.launch, 0, MAX_LAUNCHES)
        object.__setattr__(self, "launch", number)

    def __repr__(self) -> str:
        return f"Release({self.launch})"


Event: TypeAlias = Launch | Release


class Sequence:
    """An immutable, comparable, hashable list of launches and releases.

    Args:
        events: :class:`Launch` and :class:`Release` objects. A release names an earlier launch,
            each at most once.

    Raises:
        TypeError: an event is neither a launch nor a release.
        ValueError: a release of a launch that is not there or is released already.

    Limits that depend on a device are checked where the device is known:
    :meth:`tbsched.DeviceSpec.check`.
    """

    __slots__ = ("_events", "_hash", "_launches")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
            raise TypeError(
                f"Sequence.events: a list of Launch and Release is needed, got {events!r}"
            )
        self._events = tuple(events)
        launches: list[Launch] = []
        released: set[int] = set()
        for position, event in enumerate(self._events):
            if isinstance(event, Launch):
                launches.append(event)
            elif isinstance(event, Release):
                where = f"Sequence.events[{position}]: Release({event.launch})"
                if event.launch >= len(launches):
                    raise ValueError(f"{where}: only {len(launches)} launches come before it")
                if event.launch in released:
                    raise ValueError(f"{where}: launch {event.launch} is released already")
                released.add(event.launch)
            else:
                raise TypeError(
                    f"Sequence.events[{position}]: Launch or Release is needed, got {event!r}"
                )
        if len(launches) > MAX_LAUNCHES:
            raise ValueError(f"Sequence.events: {len(launches)} launches, at most {MAX_LAUNCHES}")
        self._launches = tuple(launches)
        self._hash: int | None = None

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
    data: list[dict[str, Any]] = []
    for event in sequence.events:
        if isinstance(event, Release):
            data.append({"release": event.launch})
            continue
        launch = {
            field.name: getattr(event, field.name)
            for field in fields(event)
            if field.name in _ALWAYS_WRITTEN or getattr(event, field.name) != field.default
        }
        data.append({"launch": launch})
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
        if not isinstance(item, dict) or ("launch" in item) == ("release" in item):
            raise ValueError(f'events[{position}]: {{"launch": …}} or {{"release": …}} is needed')
        if "release" in item:
            events.append(Release(item["release"]))
            continue
        launch = item["launch"]
        if not isinstance(launch, dict):
            raise TypeError(f"events[{position}].launch: an object is needed, got {launch!r}")
        missing = [field for field in _ALWAYS_SHOWN if field not in launch]
        if missing:
            raise ValueError(f"events[{position}].launch: {missing[0]} is missing")
        events.append(Launch(**{key: launch[key] for key in _LAUNCH_FIELDS if key in launch}))
    return Sequence(events)
