"""Which of the operations of a program can never start, by the model of the GPU, and why.

Kernels that are on the GPU stay for ever there. What starts only when one of them has ended never
starts.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tbsched.advice.together.capacity import capacity
from tbsched.advice.together.given import with_blocks
from tbsched.advice.together.limits import Limit
from tbsched.hangs.unfinished import Operation, StreamFacts, called
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
_STEP = 1e-4  # between two calls
_SOON = 1e-6
_STAYS = frozenset({"launch", "graph", "host_function", "wait"})
_VALUE = "value"  # captures do not say which
_KINDS: dict[str, CopyKind] = {"HtoD": "h2d", "DtoH": "d2h", "DtoD": "d2d"}
_DIRECTION = re.compile("|".join(_KINDS))
_REGISTERS = 32
_MOST_BLOCKS = 1 << 20  # of more than have room on any GPU, the later ones change nothing
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
    """

    launches: tuple[Launch | None, ...]
    stranded: tuple[Stranded, ...]
    waits_for_host: tuple[int, ...]
    trace: Trace | None
    assumed: tuple[str, ...]


def replayed(
    operations: tuple[Operation, ...],
    streams: dict[tuple[int, int], StreamFacts],
    spec: DeviceSpec,
    resident: frozenset[int] | None,
) -> Replay:
    """Returns what can never start.

    Args:
        operations: of one GPU, in order of issue.
        streams: what the streams are.
        spec: the GPU, with as many hardware queues as the process has.
        resident: places of launches that stay on the GPU. The others then run soon if they can
            start. None: each launch that can start stays for ever.

    Raises:
        ValueError: the GPU takes no such launch.
    """
    made = _Events(operations, streams, spec, resident)
    if not made.events:
        return Replay(made.launches, (), (), None, tuple(made.assumed))
    for event in made.events:
        if isinstance(event, Launch):
            spec.check(Sequence([event]))
    calls = [number * _STEP for number in range(len(made.events))]
    trace = predict(Sequence(made.events), spec, issue_times=calls)
    number_of = [place for place, launch in enumerate(made.launches) if launch is not None]
    found = []
    for launch, place in enumerate(number_of):
        late = _late(trace, launch)
        if late:
            cause, other = _why(trace, launch)
            # A value whose wait is in another stream, or an event that nothing else holds up.
            if (cause == "value" and not _has_wait_before(place, operations)) or (
                cause == "event" and _is_held_up_by_others(place, operations)
            ):
                cause = "legacy_stream"
            behind = number_of[other] if 0 <= other < len(number_of) and other != launch else None
            found.append(Stranded(place, late, cause, behind))
    stranded = tuple([_with_limits(each, made, spec, found) for each in found])
    waits = tuple([place for place in made.waiting if _is_reached(place, made, found)])
    return Replay(made.launches, stranded, waits, trace, tuple(made.assumed))


def launches_of(
    operations: tuple[Operation, ...], streams: dict[tuple[int, int], StreamFacts], spec: DeviceSpec
) -> list[Launch]:
    """Returns the launches among operations as the model takes them, each staying for ever."""
    return [each for each in _Events(operations, streams, spec, None).launches if each is not None]


class _Events:
    """The operations as events of a sequence."""

    def __init__(
        self,
        operations: tuple[Operation, ...],
        streams: dict[tuple[int, int], StreamFacts],
        spec: DeviceSpec,
        resident: frozenset[int] | None,
    ) -> None:
        self.operations, self.streams, self.spec = operations, streams, spec
        self.numbers: dict[tuple[int, int], int] = {}
        self.cuda_events: dict[int, int] = {}
        self.threads: dict[int, int] = {}
        self.events: list[Event] = []
        self.waiting: list[int] = []
        self.write = write_behind(operations, lambda each: each.what in _STAYS)
        self.assumed: list[str] = []
        launches: list[Launch | None] = []
        for of_graph, group in itertools.groupby(enumerate(operations), _graph_launch):
            made = []
            for place, operation in group:
                stays = resident is None or place in resident
                event = self.event(place, operation, FOREVER if stays else _SOON)
                launches.append(event if isinstance(event, Launch) else None)
                if event is not None:
                    made.append((operation, event))
            whole = self.graph(made) if of_graph is not None else None
            self.events += [event for _, event in made] if whole is None else [whole]
        self.launches = tuple(launches)

    def graph(self, made: list[tuple[Operation, Event]]) -> Event | None:
        """Returns the launch of a graph of some of its nodes; None: none of them is a kernel."""
        if not any(isinstance(event, Launch) for _, event in made):
            return None
        own = made[0][0]
        assert own.graph is not None
        if own.is_changed:
            self.assumed.append(
                f"What was changed in the graph of call {own.call} after it was made "
                "(cudaGraphExec…SetParams): the file does not say; assumed nothing."
            )
        if not own.graph.is_whole:
            self.assumed.append(
                f"All nodes and edges of the graph of call {own.call}: the driver did not tell "
                "them; assumed that it has no others."
            )
        edges = own.graph.edges([each.node for each, _ in made if each.node is not None])
        stream, non_blocking = self.stream(own)
        host = self.threads[own.thread] % 1024
        graph = Graph([_as_node(event) for _, event in made], edges)
        return graph.launch(stream, non_blocking=non_blocking, host=host)

    def stream(self, operation: Operation) -> tuple[Stream, bool]:
        """Returns the stream as the model numbers it, and whether it is a non-blocking one."""
        key = operation.stream_key
        facts = self.streams.get(key, StreamFacts("unknown", 0))
        if facts.kind == "null":
            return LEGACY_STREAM, False
        return self.numbers.setdefault(key, len(self.numbers)), facts.kind != "default"

    def event(self, place: int, operation: Operation, seconds: float) -> Event | None:
        """Returns the event of an operation; None if the model has none."""
        stream, non_blocking = self.stream(operation)
        host = self.threads.setdefault(operation.thread, len(self.threads)) % 1024
        of_stream: Any = {"stream": stream, "non_blocking": non_blocking, "host": host}
        match operation.what:
            case "launch":
                return self.launch(operation, seconds, of_stream)
            case "copy":
                direction = _DIRECTION.search(operation.function)
                if direction is None:
                    self.assumed.append(
                        f"Which way the copy of call {operation.call} goes: the file does not say; "
                        "assumed within the GPU's memory, where a kernel of the driver does it."
                    )
                size = min(max(operation.bytes, 1), 1 << 30)
                kind = "d2d" if direction is None else _KINDS[direction[0]]
                return Copy(size, kind, _SOON, pinned=True, **of_stream)
            case "memset":
                return Memset(min(max(operation.bytes, 1), 1 << 30), _SOON, **of_stream)
            case "record" | "wait" if operation.event is not None:
                is_known = operation.event in self.cuda_events
                if operation.what == "wait" and not is_known:
                    return None
                number = self.cuda_events.setdefault(operation.event, len(self.cuda_events))
                make = RecordEvent if operation.what == "record" else WaitEvent
                return make(number, stream, host)
            case "host_function":
                self.waiting.append(place)
                return HostFunction(FOREVER, name=operation.what, **of_stream)
            case "wait_value" if operation.node is not None:  # no node of the model waits so
                self.waiting.append(place)
                return HostFunction(FOREVER, name=operation.what, **of_stream)
            case "wait_value":
                if self.write is None:
                    self.waiting.append(place)
                else:
                    self.assumed.append(
                        f"Whether call {self.write.call} writes the value for which call "
                        f"{operation.call} waits: the file does not say; assumed that it does."
                    )
                return WaitValue(_VALUE, stream=stream, host=host)
            case "write_value":
                return WriteValue(_VALUE, stream=stream, host=host)
            case "graph":
                self.assumed.append(
                    f"What {called(operation)} runs: assumed a block of 32 threads."
                )
                return Launch(1, 32, _REGISTERS, duration=FOREVER, name="a graph", **of_stream)
            case _:
                return None

    def launch(self, operation: Operation, seconds: float, of_stream: Any) -> Launch:
        """Returns the launch of an operation; notes what is assumed."""
        name = called(operation)
        if operation.registers is None:
            self.assumed.append(
                f"Registers of {name}: the file does not say them; assumed {_REGISTERS}."
            )
        facts = self.streams.get(operation.stream_key, StreamFacts("unknown", 0))
        priority = facts.priority if operation.priority is None else operation.priority
        return Launch(
            min(operation.blocks, _MOST_BLOCKS),
            math.prod(operation.block),
            max(operation.registers or _REGISTERS, 16),
            operation.shared_memory or 0,
            local_memory=operation.local_memory or 0,
            carveout=operation.carveout,
            cluster=1 if operation.cluster is None else math.prod(operation.cluster),
            priority=priority,
            cooperative=operation.cooperative,
            programmatic=operation.programmatic,
            trigger=_SOON if operation.triggers else None,
            partition=self.partition(facts),
            duration=seconds,
            name=name,
            **of_stream,
        )

    def partition(self, facts: StreamFacts) -> Partition | None:
        """Returns some SMs, as many as the green context of a stream has; None: all."""
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


def _graph_launch(of_place: tuple[int, Operation]) -> int | None:
    """Returns the call that launched the graph of a node; None: it is no node."""
    _, operation = of_place
    return None if operation.node is None else operation.call


def _as_node(event: Any) -> Any:
    """Returns an event as a node of a graph, which has no stream and no host of its own."""
    if isinstance(event, Launch):
        return replace(event, stream=None, non_blocking=False, programmatic=False, host=0)
    if isinstance(event, RecordEvent | WaitEvent):
        return type(event)(event.event)
    if isinstance(event, Copy):
        return Copy(event.bytes, event.kind, _SOON)
    if isinstance(event, Memset):
        return Memset(event.bytes, _SOON)
    return HostFunction(event.duration, name=event.name)


def write_behind(
    operations: tuple[Operation, ...], holds: Callable[[Operation], bool]
) -> Operation | None:
    """Returns the first write of a value that work before it in its stream holds up.

    A write behind a wait for a value is none of these: it may be behind the wait that asks.
    """
    held: dict[tuple[int, int], bool] = {}
    waits: set[tuple[int, int]] = set()
    for each in operations:
        stream = each.stream_key
        if each.what == "wait_value":
            waits.add(stream)
        elif each.what == "write_value" and held.get(stream) and stream not in waits:
            return each
        elif holds(each):
            held[stream] = True
    return None


def _has_wait_before(place: int, operations: tuple[Operation, ...]) -> bool:
    """Returns whether a launch is behind a wait, for a value or an event, in its own stream."""
    own = operations[place]
    return any(
        each.what in ("wait", "wait_value")
        for each in operations[:place]
        if each.stream_key == own.stream_key
    )


def _is_held_up_by_others(place: int, operations: tuple[Operation, ...]) -> bool:
    """Returns whether a launch waits for an event before which its own stream has no work.

    So only the legacy default stream, which waits for others and they for it, holds the event up.
    """
    own = operations[place]
    before = operations[:place]
    waits = [each for each in before if each.what == "wait" and each.stream_key == own.stream_key]
    for wait in waits:
        records = [
            at
            for at, each in enumerate(before)
            if each.what == "record" and each.event == wait.event and each.call < wait.call
        ]
        if not records:
            continue
        stream = operations[records[-1]].stream_key
        earlier = operations[: records[-1]]
        if any(each.what != "record" and each.stream_key == stream for each in earlier):
            return False
    return bool(waits)


def _late(trace: Trace, launch: int) -> int:
    start_ns = trace[launch].start_ns
    assert start_ns is not None
    return int(np.count_nonzero((trace[launch].smid < 0) | (start_ns >= FOREVER * 5e8)))


def _why(trace: Trace, launch: int) -> tuple[str, int]:
    """Returns the cause of the first wait that does not end, and the launch that it is behind."""
    assert trace.waits is not None
    own = trace.waits[trace.waits["launch"] == launch]
    endless = own[own["end_ns"] - own["begin_ns"] >= FOREVER * 4e8]
    if not len(endless):
        for each in trace.hang.stranded if trace.hang is not None else ():
            if each.launch == launch:
                return each.cause, -1 if each.behind is None else each.behind
        return "unknown", -1
    first = endless[np.argmin(endless["begin_ns"])]
    return str(first["cause"]), int(first["behind"])


def _with_limits(
    stranded: Stranded, made: _Events, spec: DeviceSpec, found: list[Stranded]
) -> Stranded:
    """Adds what refuses one block more on each class of SMs, if there is too little room."""
    if stranded.cause not in ROOM:
        return stranded
    late = {each.operation: each.blocks for each in found}
    beside = [
        with_blocks(launch, started)
        for place, launch in enumerate(made.launches[: stranded.operation])
        if launch is not None and launch.duration == FOREVER
        if (started := launch.blocks - late.get(place, 0)) > 0
    ]
    own = made.launches[stranded.operation]
    assert own is not None
    try:
        room = capacity(own, spec, beside=beside)
    except ValueError:  # one of the others is not resident as a whole
        return stranded
    resources = {row.cause for row in room.limits}
    if stranded.cause == "cooperative" and len(resources) == 1 and resources <= OF_SMS:
        return replace(stranded, cause=resources.pop(), limits=room.limits)
    return replace(stranded, limits=room.limits)


def _is_reached(place: int, made: _Events, found: list[Stranded]) -> bool:
    """Returns whether nothing that an operation comes after, by its stream, waits for ever."""
    late = {each.operation for each in found}
    own = made.operations[place]
    return not any(
        (
            own.is_behind(other)
            or (before < place and _is_at_legacy_stream(own, other, made.streams))
        )
        and (before in late or launch is not None or other.what in ("wait_value", "host_function"))
        for before, (other, launch) in enumerate(zip(made.operations, made.launches, strict=True))
    )


def _is_at_legacy_stream(
    own: Operation, other: Operation, streams: dict[tuple[int, int], StreamFacts]
) -> bool:
    """Returns whether one is in the legacy default stream and the other where they wait for it."""
    kinds = {streams[each.stream_key].kind for each in (own, other) if each.stream_key in streams}
    return own.context == other.context and kinds == {"null", "default"}
