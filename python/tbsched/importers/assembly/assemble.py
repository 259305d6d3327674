"""From what a profile tells to a program that can be predicted."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from tbsched.errors import shown
from tbsched.hardware.spec import DeviceSpec
from tbsched.importers.assembly.durations import Shape, Waves
from tbsched.importers.assembly.graphs import NOTHING, in_order, known_edges
from tbsched.importers.assembly.guesses import REGISTERS, Guesses
from tbsched.importers.assembly.hosts import NOBODY, Hosts
from tbsched.importers.assembly.streams import Streams
from tbsched.importers.assembly.waits import Call, Work, with_waits
from tbsched.importers.reading.joined import what_calls
from tbsched.importers.records import (
    Called,
    EventCall,
    GraphCall,
    Kernel,
    Ran,
    Record,
    Recording,
    SynchronizeCall,
    Transfer,
    WaitingCall,
)
from tbsched.program.activity import CALL, HOST, Activity
from tbsched.program.arrays import StructuredArray, read_only
from tbsched.program.program import MEASURED, TRANSFERS, Program
from tbsched.program.sequence import (
    Copy,
    Event,
    Graph,
    HostCall,
    Launch,
    Memset,
    RecordEvent,
    Sequence,
    Synchronize,
    WaitEvent,
)

_MAX_COPY_BYTES = 1 << 30  # limit of tbsched.Copy
_KINDS = ("h2d", "d2h", "d2d", "memset")
_NO_CALL = (
    "When the host launched {count} kernels, copies or memsets: assumed when they started, by a "
    "thread of their own."
)
_PROGRAMMATIC = (
    "{count} kernels started before the kernel before them in their stream had ended: assumed "
    "programmatic launches, and that blocks trigger when they leave."
)
_GREEN = "The SMs of the green contexts of {count} kernels: assumed all."
_SIZES = (
    "{count} copies or memsets are of no bytes, or of more than 1 GiB: assumed 1 byte or 1 GiB."
)
_OTHER_COPIES = "{count} copies are not to or from the GPU: left out."
_EDGES = (
    "Which nodes wait for which in {count} launches of graphs: assumed that a node waits for the "
    "one before it in its stream, or for those that ended just before it started in each launch, "
    "and that all streams join the first one."
)
_WAITED_FOR = (
    "What the host waited for in {count} synchronisations: assumed the stream whose work ended "
    "last before they returned."
)
_WAITED_FOR_NOTHING = (
    "What the host waited for in {count} synchronisations during which no work ended: assumed "
    "nothing."
)
_NO_SHAPE = (
    "The grid and the blocks of {count} kernels: assumed one block of 128 threads for each SM."
)
_THREADS = 128
_Ran: TypeAlias = tuple[Kernel | Transfer, Called]  # work, and the call that made it


def assembled(recording: Recording, spec: DeviceSpec | None = None) -> Program:
    """Returns the program of a recording; a block runs for its kernel's time divided by its waves.

    Args:
        recording: what a reader found.
        spec: the device that will predict; None: nobody knows it.

    Raises:
        ValueError: there are no kernels, or one that CUDA could not have launched.
    """
    return _Assembly(recording, spec).program()


class _Assembly:
    def __init__(self, recording: Recording, spec: DeviceSpec | None) -> None:
        self._recording = recording
        self._spec = spec
        self._waves = Waves(spec)
        # Earlier GPUs have no programmatic launches.
        self._can_overlap = spec is None or int(spec.compute_capability.partition(".")[0]) >= 9
        self._guesses_durations = False
        self._guesses = Guesses(recording)
        nodes: dict[int, list[Kernel | Transfer]] = {}
        calls = self._ordered_calls(nodes)
        with_bodies = {
            record.number
            for record in recording.records
            if isinstance(record, GraphCall) and record.has_bodies
        }
        self._graphs = in_order(nodes, with_bodies)
        self._calls = with_waits(calls, self._work, recording.legacy_streams, self._guesses)
        self._streams = Streams(recording, self._guesses)
        self._cuda_events: dict[int, int] = {}
        self._events: list[Event] = []
        self._gaps: list[float] = []
        self._rows: list[int] = []  # row of the activity, for each event's call
        self._ran: list[_Ran] = []

    def program(self) -> Program:
        """Returns the program that the recorded calls make.

        Raises:
            ValueError: as :func:`assembled`.
        """
        begin = self._calls[0][0] if self._calls else 0
        hosts = Hosts(self._calls, begin, self._spec)
        for call_ns, return_ns, thread, item in self._calls:
            events = self._events_of(item, hosts.numbered(thread), call_ns, return_ns)
            self._events += events
            self._gaps += hosts.gaps(thread, events, call_ns, return_ns)
            self._rows += [_or_unknown(item.host_row)] * len(events)
        if not any(isinstance(ran, Kernel) for ran, _ in self._ran):
            raise ValueError(_nothing_ran(self._recording))
        first = min(begin, *(ran.start_ns for ran, _ in self._ran))
        if self._recording.activity is not None:
            first = min(first, self._recording.activity.first_ns)
        activity, first_ns = self._recording.activity, self._recording.first_ns
        return Program(
            sequence=Sequence(self._events), host=tuple(self._gaps),
            measured=_measured(self._ran, first), transfers=_moves(self._ran, first),
            streams=self._streams.names, device=self._recording.device, sms=self._recording.sms,
            connections=self._recording.connections, format=self._recording.format,
            sources=self._guesses.sources(),
            assumed=(*self._guesses.sentences(), *hosts.sentences(), *self._of_blocks()),
            gpu=self._recording.gpu, activity=None if activity is None else activity.later(-first),
            calls=None if activity is None else np.array(self._rows, np.int64),
            first_ns=None if first_ns is None else first_ns - first,
        )  # fmt: skip

    def _of_blocks(self) -> tuple[str, ...]:
        """Returns the assumption about block durations, unless the profile has them."""
        if not self._guesses_durations:
            return ()
        return (self._waves.sentence(self._recording.device, self._recording.sms),)

    def _ordered_calls(self, nodes: dict[int, list[Kernel | Transfer]]) -> list[Call]:
        """Returns the calls by time; work with an unknown call counts as called when it started.
        Work of a launch of a graph is no call, but is added to its ``nodes``."""
        launched = {item.number for item in self._recording.records if isinstance(item, GraphCall)}
        calls: list[Call] = []
        last, alone = 0, 0
        called_by = _latest_calls(self._recording.records)
        for item in self._recording.records:
            if isinstance(item, Transfer) and item.kind not in _KINDS:
                self._guesses.note(_OTHER_COPIES)
                continue
            if isinstance(item, Ran) and item.graph in launched and item.graph is not None:
                nodes.setdefault(item.graph, []).append(item)
                continue
            thread, call_ns = item.thread, item.call_ns
            if call_ns is None:
                thread = NOBODY
                call_ns = called_by[id(item)] if isinstance(item, Ran) else last
                alone += isinstance(item, Ran)
            return_ns = call_ns if item.return_ns is None else item.return_ns
            if return_ns < call_ns:
                raise ValueError(f"a call returned at {return_ns} ns, before it was made")
            last = call_ns
            calls.append((call_ns, return_ns, thread, item))
        if alone:
            self._guesses.note(_NO_CALL, alone)
        calls.sort(key=lambda call: call[:2])
        return calls

    def _work(self, item: Called) -> Work | None:
        """Returns the work that a call launched, with its times."""
        if isinstance(item, Kernel | Transfer):
            return Work(item.stream, item.start_ns, item.end_ns, item.return_ns)
        nodes = self._graphs.get(item.number, NOTHING).nodes if isinstance(item, GraphCall) else []
        if not nodes or not isinstance(item, GraphCall):
            return None
        start_ns, end_ns = min(n.start_ns for n in nodes), max(n.end_ns for n in nodes)
        return Work(item.stream, start_ns, end_ns, item.return_ns)

    def _events_of(self, item: Called, host: int, call_ns: int, return_ns: int) -> list[Event]:
        """Returns the events that a call is in a sequence; none if it does nothing there."""
        match item:
            case Kernel():
                return [self._launched(item, host)]
            case Transfer():
                return [self._transferred(item, host)]
            case GraphCall():
                return self._graph(item, host)
            case EventCall():
                event = self._cuda_events.setdefault(item.event, len(self._cuda_events))
                stream = self._streams.numbered(item.stream)
                if item.waits:
                    return [WaitEvent(event, stream, host)]
                return [RecordEvent(event, stream, host, timing=item.timing)]
            case SynchronizeCall():
                return self._synchronize(item, host, call_ns, return_ns)
            case WaitingCall():
                host_ns = self._streams.own_ns(call_ns, return_ns)
                if host_ns is None:
                    return []  # as of cudaFree(0)
                return [HostCall(item.name, host_ns / 1e9, waits="device", host=host)]
        raise TypeError(f"a record of a profile is needed, got {shown(item)}")

    def _launched(self, kernel: Kernel, host: int) -> Launch:
        """Returns the launch of a kernel in a stream."""
        streams, programmatic = self._streams, kernel.programmatic
        if programmatic is None and self._can_overlap and streams.overlaps_last(kernel):
            self._guesses.note(_PROGRAMMATIC)
            programmatic = True
        launch = self._launch(
            kernel, stream=streams.numbered(kernel.stream),
            non_blocking=streams.is_non_blocking(kernel.stream),
            programmatic=self._guesses.given("programmatic launch", programmatic, False),
            first_use=self._recording.first_uses and bool(kernel.first_use), host=host,
        )  # fmt: skip
        streams.issue(kernel.stream, kernel)
        self._ran.append((kernel, kernel))
        return launch

    def _launch(self, kernel: Kernel, seconds: float | None = None, **of_stream: Any) -> Launch:
        """Returns the launch of a kernel; without anything of a stream, as a node of a graph.

        Args:
            kernel: what ran.
            seconds: for which it counts as having run; None: as long as it did.
            of_stream: the fields of a launch in a stream.
        """
        given = self._guesses.given
        self._guesses.count_kernel()
        priority = kernel.priority
        if priority is None:
            priority = self._recording.priorities.get(kernel.stream)
        if kernel.green_context is not None:
            self._guesses.note(_GREEN)
        if kernel.grid is None or kernel.block is None:
            self._guesses.note(_NO_SHAPE)
        blocks = self._spec.sms if self._spec is not None else 1
        shape = (
            blocks if kernel.grid is None else math.prod(kernel.grid),
            _THREADS if kernel.block is None else math.prod(kernel.block),
            given("registers", kernel.registers, REGISTERS),
            self._guesses.shared_memory(kernel),
            given("local memory", kernel.local_memory, 0),
            self._guesses.carveout(kernel),
            self._guesses.cluster(kernel),
        )
        try:
            return Launch(
                *shape, priority=given("priority", priority, 0),
                duration=kernel.block_seconds or self._block_seconds(kernel, seconds, shape),
                name=kernel.name,
                cooperative=given("cooperative launch", kernel.cooperative, False), **of_stream,
            )  # fmt: skip
        except ValueError as error:
            raise ValueError(f"kernel {shown(kernel.name)}: {error}") from None

    def _block_seconds(self, kernel: Kernel, seconds: float | None, shape: Shape) -> float:
        """Returns a first guess of the blocks' duration."""
        self._guesses_durations = True
        took = (kernel.end_ns - kernel.start_ns) / 1e9 if seconds is None else seconds
        return took / self._waves.of(shape)

    def _transferred(self, moved: Transfer, host: int) -> Event:
        """Returns a copy or memset in a stream."""
        event = self._transfer(
            moved, stream=self._streams.numbered(moved.stream),
            non_blocking=self._streams.is_non_blocking(moved.stream), host=host,
        )  # fmt: skip
        if isinstance(event, Copy):
            is_pinned = event.kind == "d2d" or self._guesses.pinned(moved)
            event = replace(event, pinned=is_pinned, blocking=bool(moved.blocking))
        self._streams.issue(moved.stream, moved)
        self._ran.append((moved, moved))
        return event

    def _transfer(
        self, moved: Transfer, seconds: float | None = None, **of_stream: Any
    ) -> Copy | Memset:
        """Returns the copy or memset; arguments as of :meth:`_launch`."""
        size = min(max(moved.bytes, 1), _MAX_COPY_BYTES)
        if size != moved.bytes:
            self._guesses.note(_SIZES)
        if seconds is None:
            seconds = (moved.end_ns - moved.start_ns) / 1e9
        if moved.kind == "memset":
            return Memset(size, seconds, **of_stream)
        return Copy(size, moved.kind, seconds, **of_stream)  # type: ignore[arg-type]

    def _graph(self, call: GraphCall, host: int) -> list[Event]:
        """Returns a launch of a graph; of a graph without kernels its copies and memsets."""
        ran_nodes, inferred_edges, seconds = self._graphs.get(call.number, NOTHING)
        if not any(isinstance(ran, Kernel) for ran in ran_nodes):
            return [self._transferred(ran, host) for ran in ran_nodes if isinstance(ran, Transfer)]
        nodes = [
            self._launch(x, took) if isinstance(x, Kernel) else self._transfer(x, took)
            for x, took in zip(ran_nodes, seconds, strict=True)
        ]
        edges = inferred_edges if call.edges is None else known_edges(ran_nodes, call.edges)
        if call.edges is None:
            self._guesses.note(_EDGES)
        for node in ran_nodes:
            self._streams.issue(call.stream, node)
            self._ran.append((node, call))
        return [
            Graph(nodes, edges).launch(
                self._streams.numbered(call.stream),
                non_blocking=self._streams.is_non_blocking(call.stream),
                host=host,
            )
        ]

    def _synchronize(
        self, call: SynchronizeCall, host: int, call_ns: int, return_ns: int
    ) -> list[Event]:
        """Returns the event of a call that waits for a stream, an event or the device."""
        stream = call.stream
        if not call.known:
            stream = self._streams.waited_for(call_ns, return_ns)
            if stream is None:
                self._guesses.note(_WAITED_FOR_NOTHING)
                return []
            self._guesses.note(_WAITED_FOR)
        if stream is not None:
            return [Synchronize(self._streams.numbered(stream), host=host)]
        if call.event is not None:
            event = self._cuda_events.setdefault(call.event, len(self._cuda_events))
            return [Synchronize(event=event, host=host)]
        return [Synchronize(host=host)]


def _nothing_ran(recording: Recording) -> str:
    """Returns the message for a profile without kernels."""
    unended = recording.unended
    if not unended:
        return f"no kernels that ran on a GPU; {_without_work(recording.activity)}"
    more = f" and {len(unended) - 1} more operations have" if len(unended) > 1 else " has"
    return (
        f"no kernel has ended: a {unended[0]},{more} been issued and not ended; `tbsched hang` "
        "says why"
    )


def _without_work(activity: Activity | None) -> str:
    """Returns why a profile may have no work, by its calls of CUDA."""
    host = np.zeros(0, HOST) if activity is None else activity.host
    calls = Counter(host["name"][host["kind"] == CALL].tolist())
    if activity is None or not calls:
        return "was the profiler told to record CUDA?"
    launching = ("work", "blocking", "graph")
    launches = sum(
        count for name, count in calls.items() if what_calls(activity.names[name]) in launching
    )
    if not launches:
        return f"none of its {calls.total():,} calls of CUDA launches anything"
    return (
        f"it has {launches:,} calls that launch work, so either they failed, or the profiler could "
        "not trace the GPU (a driver without that permission, or a virtual machine)"
    )


def _latest_calls(records: list[Record]) -> dict[int, int]:
    """Returns the latest time of an unknown call, by the identity of its work. That is when it
    started, or when something was called that ran after it in its stream."""
    latest_ns: dict[int, int] = {}
    called: dict[tuple[int, int], int] = {}
    work = [record for record in records if isinstance(record, Ran)]
    for item in sorted(work, key=lambda item: -item.start_ns):
        stream = item.device, item.stream
        latest = item.start_ns if item.call_ns is None else item.call_ns
        called[stream] = min(latest, called.get(stream, latest))
        if item.call_ns is None:
            latest_ns[id(item)] = called[stream]
    return latest_ns


def _measured(ran: list[_Ran], first_ns: int) -> StructuredArray:
    """Returns the measured times of launches, a row each, as ``MEASURED``."""
    rows = [(work, call) for work, call in ran if isinstance(work, Kernel)]

    def since(value: int | None) -> int:
        """Returns a time in ns after the first one; ``UNKNOWN``: there is none."""
        return -1 if value is None else value - first_ns

    columns: dict[str, list[Any]] = {
        "name": [kernel.name for kernel, _ in rows],
        "stream": [kernel.stream for kernel, _ in rows],
        "start_ns": [since(kernel.start_ns) for kernel, _ in rows],
        "end_ns": [since(kernel.end_ns) for kernel, _ in rows],
        "call_ns": [since(call.call_ns) for _, call in rows],
        "return_ns": [since(call.return_ns) for _, call in rows],
        "channel": [_or_unknown(kernel.channel) for kernel, _ in rows],
        "shared_memory_executed": [_or_unknown(row.shared_memory_executed) for row, _ in rows],
        "work": [_or_unknown(kernel.row) for kernel, _ in rows],
    }
    measured = np.empty(len(rows), MEASURED)
    for name, column in columns.items():
        kind = MEASURED[name]
        # NumPy 1 would write what is left of a number that is too large.
        if kind.kind == "i" and max(column, default=0) > (max_value := np.iinfo(kind).max):
            raise ValueError(f"{name}: numbers up to {max_value} are needed")
        measured[name] = column
    return read_only(measured)


def _or_unknown(value: int | None) -> int:
    """Returns a number, or ``UNKNOWN`` for None."""
    return -1 if value is None else value


def _moves(ran: list[_Ran], first_ns: int) -> StructuredArray:
    """Returns the measured times of copies and memsets, a row each, as ``TRANSFERS``."""
    times = [
        (x.start_ns - first_ns, x.end_ns - first_ns, _or_unknown(x.row))
        for x, _ in ran
        if isinstance(x, Transfer)
    ]
    return read_only(np.array(times, TRANSFERS))
