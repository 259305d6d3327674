"""Which of the operations of a program can never start, by the model of the GPU, and why.

Kernels that are on the GPU stay for ever there. What starts only when one of them has ended never
starts.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tbsched.advice.together.capacity import capacity
from tbsched.advice.together.given import with_blocks
from tbsched.advice.together.limits import Limit
from tbsched.hangs.unfinished import Operation, StreamFacts, name_of
from tbsched.hardware.partitions import split_sms
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.events.transfers import CopyKind
from tbsched.program.partition import Partition
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Event,
    Graph,
    HostFunction,
    Launch,
    Memset,
    RecordEvent,
    Sequence,
    Stream,
    WaitEvent,
    WaitValue,
    WriteValue,
)
from tbsched.traces.trace import OF_SMS, Trace

FOREVER = 1e4  # seconds; some hundred thousand launches, one after the other, still have a time
_CALL_SECONDS = 1e-4  # between two calls
_SHORT_SECONDS = 1e-6
_ENDLESS_KINDS = frozenset({"launch", "graph", "host_function", "wait"})
_VALUE = "value"  # if a capture does not say at which address each of them is
_KINDS: dict[str, CopyKind] = {"HtoD": "h2d", "DtoH": "d2h", "DtoD": "d2d"}
_DIRECTION = re.compile("|".join(_KINDS))
_REGISTERS = 32
_MAX_BLOCKS = 1 << 20  # of more than have room on any GPU, the later ones change nothing
# What a program asks for: to wait for these is no fault of the GPU.
OWN_ORDER = frozenset({"stream", "event", "value", "node", "trigger"})
ROOM = OF_SMS | {"cooperative", "cluster", "queue", "grids"}


@dataclass(frozen=True, slots=True)
class Stranded:
    """A launch of which blocks never start.

    Attributes:
        operation: its place among the operations.
        blocks: how many blocks never start, of as many as ``Replay.launches`` has.
        cause: what they wait for, a word as of ``Trace.waits``.
        behind: the place of the operation that holds them up; None: no single one.
        limits: of each class of SMs what refuses one block more, if the cause is room.
    """

    operation: int
    blocks: int
    cause: str
    behind: int | None
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, slots=True)
class Replay:
    """What the model says of the operations.

    Attributes:
        launches: each as the model takes it, with at most 2**20 blocks; None for an operation that
            is no launch.
        stranded: launches of which blocks never start, in order of issue.
        waits_for_host: places of operations that only the host can end, and that are reached.
        trace: the prediction; None: there is nothing to predict.
        assumed: sentences.
        timely: places of copies and memsets, outside of graphs, that nothing holds up for ever.
    """

    launches: tuple[Launch | None, ...]
    stranded: tuple[Stranded, ...]
    waits_for_host: tuple[int, ...]
    trace: Trace | None
    assumed: tuple[str, ...]
    timely: frozenset[int] = frozenset()


def replay_operations(
    operations: tuple[Operation, ...], streams: dict[tuple[int, int], StreamFacts],
    spec: DeviceSpec, resident: frozenset[int] | None,
) -> Replay:  # fmt: skip
    """Returns which operations can never start, by the model, and why.

    Args:
        operations: of one GPU, in order of issue.
        streams: what the streams are.
        spec: the GPU, with as many hardware queues as the process has.
        resident: places of launches that stay on the GPU. The others then run soon if they can
            start. None: each launch that can start stays for ever.

    Raises:
        ValueError: the GPU takes no such launch.
    """
    events = _EventBuilder(operations, streams, spec, resident)
    if not events.events:
        return Replay(events.launches, (), (), None, tuple(events.assumed))
    for event in events.events:
        if isinstance(event, Launch):
            spec.check(Sequence([event]))
    issue_times = [number * _CALL_SECONDS for number in range(len(events.events))]
    trace = predict(Sequence(events.events), spec, issue_times=issue_times)
    indices = [index for index, launch in enumerate(events.launches) if launch is not None]
    found = []
    for launch, index in enumerate(indices):
        missing = _stranded_blocks(trace, launch)
        if missing:
            cause, blocker = _endless_wait(trace, launch)
            # A value whose wait is in another stream, or an event that nothing else holds up.
            if (cause == "value" and not _has_wait_before(index, operations)) or (
                cause == "event" and _waits_for_idle_record(index, operations)
            ):
                cause = "legacy_stream"
            behind = indices[blocker] if 0 <= blocker < len(indices) and blocker != launch else None
            found.append(Stranded(index, missing, cause, behind))
    stranded = tuple([_with_limits(each, events, spec, found) for each in found])
    host_waits = tuple([index for index in events.host_waits if _is_reached(index, events, found)])
    timely = frozenset(_timely_transfers(trace, events))
    return Replay(events.launches, stranded, host_waits, trace, tuple(events.assumed), timely)


def _timely_transfers(trace: Trace, events: _EventBuilder) -> Iterator[int]:
    """Yields the places of copies and memsets, outside of graphs, that run soon by the model."""
    assert trace.transfer_ns is not None
    for event, (start_ns, _) in zip(trace.sequence.transfers, trace.transfer_ns, strict=True):
        index = events.transfers.get(id(event))
        if index is not None and 0 <= start_ns < FOREVER * 5e8:
            yield index


def launches_of(
    operations: tuple[Operation, ...], streams: dict[tuple[int, int], StreamFacts], spec: DeviceSpec
) -> list[Launch]:
    """Returns the launches among operations as the model takes them; each never ends."""
    launches = _EventBuilder(operations, streams, spec, None).launches
    return [launch for launch in launches if launch is not None]


class _EventBuilder:
    """Makes the events of a sequence from operations, and notes what it assumes."""

    def __init__(
        self, operations: tuple[Operation, ...], streams: dict[tuple[int, int], StreamFacts],
        spec: DeviceSpec, resident: frozenset[int] | None,
    ) -> None:  # fmt: skip
        self.operations, self.streams, self.spec = operations, streams, spec
        self.stream_numbers: dict[tuple[int, int], int] = {}
        self.cuda_events: dict[int, int] = {}  # of the model, by the number in the capture
        self.timed_events: set[int] = set()  # of the model
        self.made_events = 0  # of the model
        self.transfers: dict[int, int] = {}  # places of copies and memsets, by id of their event
        self.threads: dict[int, int] = {}
        self.events: list[Event] = []
        self.host_waits: list[int] = []
        values = [each for each in operations if each.what in ("wait_value", "write_value")]
        self.has_addresses = all(each.address is not None for each in values)
        self.assumed: list[str] = []
        launches: list[Launch | None] = []
        for graph_call, group in itertools.groupby(enumerate(operations), _graph_call):
            events = []
            for index, op in group:
                is_endless = resident is None or index in resident
                event = self.event(index, op, FOREVER if is_endless else _SHORT_SECONDS)
                launches.append(event if isinstance(event, Launch) else None)
                if isinstance(event, Copy | Memset):
                    self.transfers[id(event)] = index
                if event is not None:
                    events.append((op, event))
            whole = self.graph(events) if graph_call is not None else None
            self.events += [event for _, event in events] if whole is None else [whole]
        self.launches = tuple(launches)

    def graph(self, nodes: list[tuple[Operation, Event]]) -> Event | None:
        """Returns the launch of a graph with some of its nodes; None: none of them is a kernel."""
        if not any(isinstance(event, Launch) for _, event in nodes):
            return None
        node = nodes[0][0]
        assert node.graph is not None
        if node.is_changed:
            self.assumed.append(
                f"What was changed in the graph of call {node.call} after it was made "
                "(cudaGraphExec…SetParams): the file does not say; assumed nothing."
            )
        if not node.graph.is_whole:
            self.assumed.append(
                f"All nodes and edges of the graph of call {node.call}: the driver did not tell "
                "them; assumed that it has no others."
            )
        edges = node.graph.edges([each.node for each, _ in nodes if each.node is not None])
        stream, non_blocking = self.stream(node)
        host = self.threads[node.thread] % 1024
        graph = Graph([_as_node(event) for _, event in nodes], edges)
        return graph.launch(stream, non_blocking=non_blocking, host=host)

    def stream(self, op: Operation) -> tuple[Stream, bool]:
        """Returns an operation's stream as the model numbers it, and whether it is non-blocking."""
        key = op.stream_key
        facts = self.streams.get(key, StreamFacts("unknown", 0))
        if facts.kind == "null":
            return LEGACY_STREAM, False
        number = self.stream_numbers.setdefault(key, len(self.stream_numbers))
        return number, facts.kind != "default"

    def event(self, index: int, operation: Operation, seconds: float) -> Event | None:
        """Returns an operation as an event of the model; None: the model has none for it."""
        stream, non_blocking = self.stream(operation)
        host = self.threads.setdefault(operation.thread, len(self.threads)) % 1024
        where: Any = {"stream": stream, "non_blocking": non_blocking, "host": host}
        match operation.what:
            case "launch":
                return self.launch(operation, seconds, where)
            case "copy":
                direction = _DIRECTION.search(operation.function)
                if direction is None:
                    self.assumed.append(
                        f"Which way the copy of call {operation.call} goes: the file does not say; "
                        "assumed within the GPU's memory, where a kernel of the driver does it."
                    )
                size = min(max(operation.bytes, 1), 1 << 30)
                kind = "d2d" if direction is None else _KINDS[direction[0]]
                return Copy(size, kind, _SHORT_SECONDS, pinned=True, **where)
            case "memset":
                return Memset(min(max(operation.bytes, 1), 1 << 30), _SHORT_SECONDS, **where)
            case "record" | "wait" if operation.event is not None:
                if operation.what == "record":
                    return self.record(operation.event, operation.has_timing, stream, host)
                number = self.cuda_events.get(operation.event)
                return None if number is None else WaitEvent(number, stream, host)
            case "host_function":
                self.host_waits.append(index)
                return HostFunction(FOREVER, name=operation.what, **where)
            case "wait_value" if operation.node is not None:  # no node of the model waits so
                self.host_waits.append(index)
                return HostFunction(FOREVER, name=operation.what, **where)
            case "wait_value":
                held_write = first_held_write(
                    self.operations, lambda each: each.what in _ENDLESS_KINDS, operation
                )
                if held_write is None:
                    self.host_waits.append(index)
                elif held_write.address is None or operation.address is None:
                    self.assumed.append(
                        f"Whether call {held_write.call} writes the value for which call "
                        f"{operation.call} waits: the file does not say; assumed that it does."
                    )
                return WaitValue(self.value(operation), stream=stream, host=host)
            case "write_value":
                return WriteValue(self.value(operation), stream=stream, host=host)
            case "graph":
                self.assumed.append(
                    f"What {name_of(operation)} runs: assumed a block of 32 threads."
                )
                return Launch(1, 32, _REGISTERS, duration=FOREVER, name="a graph", **where)
            case _:
                return None

    def value(self, operation: Operation) -> str:
        """Returns the name of the value that an operation writes, or waits for."""
        return f"{operation.address:#x}" if self.has_addresses else _VALUE

    def record(self, event: int, has_timing: bool, stream: Stream, host: int) -> RecordEvent:
        """Returns the record of a CUDA event, by its number in the capture."""
        number = self.cuda_events.get(event)
        # One that was made anew can have the number of another that was destroyed.
        if number is None or (number in self.timed_events) != has_timing:
            number = self.made_events
            self.made_events += 1
            self.cuda_events[event] = number
            if has_timing:
                self.timed_events.add(number)
        return RecordEvent(number, stream, host, timing=has_timing)

    def launch(self, operation: Operation, seconds: float, where: Any) -> Launch:
        """Returns an operation as a launch that runs for some seconds; notes what is assumed."""
        name = name_of(operation)
        if operation.registers is None:
            self.assumed.append(
                f"Registers of {name}: the file does not say them; assumed {_REGISTERS}."
            )
        facts = self.streams.get(operation.stream_key, StreamFacts("unknown", 0))
        priority = facts.priority if operation.priority is None else operation.priority
        return Launch(
            min(operation.blocks, _MAX_BLOCKS), math.prod(operation.block),
            max(operation.registers or _REGISTERS, 16), operation.shared_memory or 0,
            local_memory=operation.local_memory or 0, carveout=operation.carveout,
            cluster=1 if operation.cluster is None else math.prod(operation.cluster),
            priority=priority, cooperative=operation.cooperative,
            programmatic=operation.programmatic,
            trigger=_SHORT_SECONDS if operation.triggers else None, partition=self.partition(facts),
            duration=seconds, name=name, **where,
        )  # fmt: skip

    def partition(self, facts: StreamFacts) -> Partition | None:
        """Returns as many SMs as a stream's green context has; None: all."""
        sms = facts.green_sms
        if sms is None or not 0 < sms < self.spec.sms:
            return None
        try:
            groups, _ = split_sms(self.spec, min_sms=sms, groups=1)
        except ValueError:  # the driver splits this GPU in another way
            groups = ()
        same = [group for group in groups if len(group) == sms]
        which = "The SMs of a green context: a capture has their number alone; assumed those of "
        which += "the first group of a split." if same else "the lowest numbers."
        if which not in self.assumed:
            self.assumed.append(which)
        return same[0] if same else Partition(tuple(range(sms)))


def _graph_call(indexed: tuple[int, Operation]) -> int | None:
    """Returns the call that launched the graph of a node; None: the operation is no node."""
    _, operation = indexed
    return None if operation.node is None else operation.call


def _as_node(event: Any) -> Any:
    """Returns an event as a node of a graph, without stream and host."""
    if isinstance(event, Launch):
        return replace(event, stream=None, non_blocking=False, programmatic=False, host=0)
    if isinstance(event, RecordEvent | WaitEvent):
        return type(event)(event.event)
    if isinstance(event, Copy):
        return Copy(event.bytes, event.kind, _SHORT_SECONDS)
    if isinstance(event, Memset):
        return Memset(event.bytes, _SHORT_SECONDS)
    return HostFunction(event.duration, name=event.name)


def first_held_write(
    operations: tuple[Operation, ...], holds: Callable[[Operation], bool], wait: Operation
) -> Operation | None:
    """Returns the first write of a value that may be awaited, behind work in its stream that may
    not end; None: none. A write behind a wait for a value is none of these: it may be behind the
    wait that asks."""
    held: dict[tuple[int, int], bool] = {}
    waiting: set[tuple[int, int]] = set()
    for op in operations:
        stream = op.stream_key
        if op.what == "wait_value":
            waiting.add(stream)
        elif op.what == "write_value" and held.get(stream) and stream not in waiting:
            if None in (op.address, wait.address) or op.address == wait.address:
                return op
        elif holds(op):
            held[stream] = True
    return None


def _has_wait_before(index: int, operations: tuple[Operation, ...]) -> bool:
    """Returns whether a wait, for a value or an event, is before an operation in its stream."""
    launch = operations[index]
    return any(
        operation.what in ("wait", "wait_value")
        for operation in operations[:index]
        if operation.stream_key == launch.stream_key
    )


def _waits_for_idle_record(index: int, operations: tuple[Operation, ...]) -> bool:
    """Returns whether a launch waits for an event before which its recording stream has no work. So
    only the legacy default stream, which waits for others and they for it, holds the event up."""
    launch = operations[index]
    before = operations[:index]
    waits = [
        each for each in before if each.what == "wait" and each.stream_key == launch.stream_key
    ]
    for wait in waits:
        records = [
            record_index
            for record_index, each in enumerate(before)
            if each.what == "record" and each.event == wait.event and each.call < wait.call
        ]
        if not records:
            continue
        stream = operations[records[-1]].stream_key
        earlier = operations[: records[-1]]
        if any(each.what != "record" and each.stream_key == stream for each in earlier):
            return False
    return bool(waits)


def _stranded_blocks(trace: Trace, launch: int) -> int:
    """Returns the number of blocks of a launch that never start."""
    start_ns = trace[launch].start_ns
    assert start_ns is not None
    return int(np.count_nonzero((trace[launch].smid < 0) | (start_ns >= FOREVER * 5e8)))


def _endless_wait(trace: Trace, launch: int) -> tuple[str, int]:
    """Returns cause and blocking launch of the first wait that does not end; -1: no single one."""
    assert trace.waits is not None
    waits = trace.waits[trace.waits["launch"] == launch]
    endless = waits[waits["end_ns"] - waits["begin_ns"] >= FOREVER * 4e8]
    if not len(endless):
        for each in trace.hang.stranded if trace.hang is not None else ():
            if each.launch == launch:
                return each.cause, -1 if each.behind is None else each.behind
        return "unknown", -1
    first = endless[np.argmin(endless["begin_ns"])]
    return str(first["cause"]), int(first["behind"])


def _with_limits(
    stranded: Stranded, builder: _EventBuilder, spec: DeviceSpec, all_stranded: list[Stranded]
) -> Stranded:
    """Returns a stranded launch with what refuses one block more on each class of SMs."""
    if stranded.cause not in ROOM:
        return stranded
    missing = {each.operation: each.blocks for each in all_stranded}
    residents = [
        with_blocks(launch, started)
        for index, launch in enumerate(builder.launches[: stranded.operation])
        if launch is not None and launch.duration == FOREVER
        if (started := launch.blocks - missing.get(index, 0)) > 0
    ]
    own = builder.launches[stranded.operation]
    assert own is not None
    try:
        room = capacity(own, spec, beside=residents)
    except ValueError:  # one of the others is not resident as a whole
        return stranded
    resources = {row.cause for row in room.limits}
    if stranded.cause == "cooperative" and len(resources) == 1 and resources <= OF_SMS:
        return replace(stranded, cause=resources.pop(), limits=room.limits)
    return replace(stranded, limits=room.limits)


def _is_reached(index: int, builder: _EventBuilder, stranded: list[Stranded]) -> bool:
    """Returns whether nothing before an operation in its stream waits for ever."""
    late = {each.operation for each in stranded}
    op = builder.operations[index]
    return not any(
        (
            op.is_behind(other)
            or (before < index and _is_at_legacy_stream(op, other, builder.streams))
        )
        and (before in late or launch is not None or other.what in ("wait_value", "host_function"))
        for before, (other, launch) in enumerate(
            zip(builder.operations, builder.launches, strict=True)
        )
    )


def _is_at_legacy_stream(
    own: Operation, other: Operation, streams: dict[tuple[int, int], StreamFacts]
) -> bool:
    """Returns whether one is in the legacy default stream and the other where they wait for it."""
    kinds = {streams[each.stream_key].kind for each in (own, other) if each.stream_key in streams}
    return own.context == other.context and kinds == {"null", "default"}
