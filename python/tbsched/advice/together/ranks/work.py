"""What must end before a launch of a program of several ranks arrives at its GPU."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tbsched.advice.together.given import Pairs
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Event,
    HostCall,
    HostFunction,
    Launch,
    RecordEvent,
    Sequence,
    Stream,
    Synchronize,
    WaitEvent,
)

Mask = int  # a set of launches: bit k is launch k


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """The launches of a program, and the order that it forces on them, however late a rank is.

    Attributes:
        launches: of all GPUs, in the order of the program.
        ended_before: of each launch those that must end before it arrives at its GPU.
        arrived_before: of each launch those that arrive at its GPU before it although it does not
            wait for them: the same host issued them before, and nothing kept them waiting.
        groups: the names of ``meets``, and the launches of each.
        unseen: what may make a launch wait and is not looked at, in words. With it, nothing is
            proved.
    """

    launches: tuple[Launch, ...]
    ended_before: tuple[Mask, ...]
    arrived_before: tuple[Mask, ...]
    groups: dict[str, Mask]
    unseen: tuple[str, ...]

    @property
    def meeting(self) -> Mask:
        """Mask of the launches of all groups."""
        return self.launches_of(self.groups)

    def launches_of(self, groups: Iterable[str]) -> Mask:
        """Returns a mask of the launches of some groups."""
        return functools.reduce(operator.or_, (self.groups[name] for name in groups), 0)


def mask(numbers: Iterable[int]) -> Mask:
    """Returns a mask whose bit k says whether k is among the numbers."""
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def members(chosen: Mask) -> Iterator[int]:
    """Yields the numbers k for which bit k of a mask is set, ascending."""
    while chosen:
        lowest = chosen & -chosen
        yield lowest.bit_length() - 1
        chosen ^= lowest


def work_of(
    sequence: Sequence, specs: tuple[DeviceSpec, ...], after: Pairs = (), in_order: bool = True
) -> LaunchOrder:
    """Returns the launches of a program, and the order that it forces on them.

    Args:
        sequence: the program.
        specs: its GPUs.
        after: pairs of launches; the second arrives only when all blocks of the first are resident.
        in_order: whether launches of one host that nothing keeps waiting arrive at their GPU in the
            order of its calls.
    """
    reading = _IssueReader(specs)
    for event in sequence:
        reading.read(event)
    if not in_order:
        reading.arrived_before = [0] * len(reading.launches)
    for first, second in after:
        reading.ended_before[second] |= reading.ended_before[first]
        reading.arrived_before[second] |= 1 << first
    groups: dict[str, Mask] = {}
    for number, launch in enumerate(reading.launches):
        if launch.meets is not None and not launch.in_block_order:
            groups[launch.meets] = groups.get(launch.meets, 0) | 1 << number
    return LaunchOrder(
        tuple(reading.launches), tuple(reading.ended_before), tuple(reading.arrived_before), groups,
        tuple(sorted(reading.all_limitations())),
    )  # fmt: skip


@dataclass(slots=True)
class _IssueReader:
    """Reads a program's events in order, and notes what each launch comes after.

    Attributes:
        streams: of each (GPU, stream) the launches that must end before later work in it.
        busy: the streams that have work other than launches, which takes time.
        hosts_of: of each GPU the hosts that issue work for it, or wait for it.
        recorded: of each CUDA event what must end before it happens.
        hosts_of_event: of each CUDA event the hosts that record it, or wait for it.
        host_waits_for: of each host what must end before it issues more.
    """

    specs: tuple[DeviceSpec, ...]
    launches: list[Launch] = field(default_factory=list)
    ended_before: list[Mask] = field(default_factory=list)
    arrived_before: list[Mask] = field(default_factory=list)
    unhindered: list[int] = field(default_factory=list)
    streams: dict[tuple[int, object], Mask] = field(default_factory=dict)
    busy: set[tuple[int, object]] = field(default_factory=set)
    hosts_of: dict[int, set[int]] = field(default_factory=dict)
    recorded: dict[int, Mask] = field(default_factory=dict)
    hosts_of_event: dict[int, set[int]] = field(default_factory=dict)
    host_waits_for: dict[int, Mask] = field(default_factory=dict)
    unseen: set[str] = field(default_factory=set)

    def read(self, event: Event) -> None:
        """Notes what the next event of the program does to the order of launches."""
        match event:
            case Launch():
                self._launch(event)
            case RecordEvent():
                if event.timing:
                    self.unseen.add("records of events with timing")
                self.recorded[event.event] = self._issue_into(event.gpu, event.stream, event.host)
                self.hosts_of_event.setdefault(event.event, set()).add(event.host)
            case WaitEvent():
                record = self._read_record(event.event, event.host)
                if event.event in self.recorded:
                    self._issue_into(event.gpu, event.stream, event.host)
                    self.busy.add((event.gpu, event.stream))
                    self.streams[event.gpu, event.stream] |= record
            case HostCall(holds="throughout"):
                self.unseen.add("calls that hold the driver while they wait")
            case Synchronize(event=int(number)):
                self._host_waits(event.host, self._read_record(number, event.host))
            case Synchronize() | HostCall(waits="stream"):
                self._host_waits(
                    event.host, self._all_of_stream(event.gpu, event.stream, event.host)
                )
            case HostCall(waits="device"):
                self._host_waits(event.host, self._all_of_stream(event.gpu, None, event.host))
            case HostCall():
                pass
            case Copy(kind="p2p", stream="legacy"):
                self.unseen.add("peer copies in the legacy stream")
            case HostFunction() | Copy(kind="h2d" | "d2h" | "p2p"):  # others are kernels
                self._issue_into(event.gpu, event.stream, event.host)
                self.busy.add((event.gpu, event.stream))
            case _:
                self.unseen.add(f"{type(event).__name__} events")

    def all_limitations(self) -> set[str]:
        """Returns what the analysis does not cover, in words; empty: it covers the program."""
        found = set(self.unseen)
        streams_of: dict[int, set[object]] = {}
        for gpu, stream in self.streams:
            streams_of.setdefault(gpu, set()).add(stream)
        for gpu, streams in streams_of.items():
            if LEGACY_STREAM in streams and len(streams) > 1:
                found.add("work of the legacy stream beside other streams")
            if len(streams) > self.specs[gpu].hardware_queues:
                found.add("streams that share a hardware queue")
        if any(len(hosts) > 1 for hosts in self.hosts_of.values()):
            found.add("a GPU that several hosts use")
        if any(len(hosts) > 1 for hosts in self.hosts_of_event.values()):
            found.add("CUDA events that another host records")
        return found

    def _launch(self, launch: Launch) -> None:
        """Adds a launch, and notes which launches end before it arrives, and which only arrive
        before it."""
        number = len(self.launches)
        own_stream = ("of launch", number)
        where = (launch.gpu, own_stream if launch.stream is None else launch.stream)
        before = self._issue_into(*where, launch.host)
        first = [
            k
            for k in self.unhindered
            if self.launches[k].gpu == launch.gpu and self.launches[k].priority == launch.priority
        ]
        self.launches.append(launch)
        self.ended_before.append(before)
        self.arrived_before.append(mask(first) & ~before)
        if not before and where not in self.busy:
            self.unhindered.append(number)
        self.streams[where] = before | 1 << number
        if launch.first_use:
            self.unseen.add("first uses of kernels")
        if launch.programmatic or launch.completion_event is not None:
            self.unseen.add("programmatic launches")

    def _issue_into(self, gpu: int, stream: object, host: int) -> Mask:
        """Notes that a host issues work into a stream. Returns a mask of the launches that must end
        before this work begins."""
        self.hosts_of.setdefault(gpu, set()).add(host)
        before = self.streams.get((gpu, stream), 0) | self.host_waits_for.get(host, 0)
        self.streams[gpu, stream] = before
        return before

    def _read_record(self, event: int, host: int) -> Mask:
        """Returns a mask of the launches that must end before an event's record."""
        self.hosts_of_event.setdefault(event, set()).add(host)
        return self.recorded.get(event, 0)

    def _all_of_stream(self, gpu: int, stream: Stream | None, host: int) -> Mask:
        """Returns a mask of the launches issued to a stream of a GPU; ``stream`` None: to all
        streams."""
        self.hosts_of.setdefault(gpu, set()).add(host)
        keys = [key for key in self.streams if key[0] == gpu and stream in (None, key[1])]
        return functools.reduce(operator.or_, map(self.streams.__getitem__, keys), 0)

    def _host_waits(self, host: int, ended: Mask) -> None:
        """Notes that a host waits for the end of some launches before it issues more."""
        self.host_waits_for[host] = self.host_waits_for.get(host, 0) | ended
