"""The operations of a program: what streams do, and the calls for which host threads wait.

An example: stream 1 has a copy, and the legacy stream a kernel. If the kernel is called first, the
copy waits for its end. So the kernel must not wait for the copy.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tbsched.advice.together.ranks.work import Mask, mask, members
from tbsched.errors import shown
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.events.graph import Node
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Event,
    GraphLaunch,
    HostCall,
    HostFunction,
    Launch,
    Memset,
    RecordEvent,
    Release,
    Sequence,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)

MAX_EVENTS = 500
Work: TypeAlias = Event | Node
_OWN_QUEUE_BYTES = 64 << 10  # larger copies take no hardware queue, whatever the device
# Calls that let other threads call while they wait (docs/explanation/hosts.md).
LET_OTHERS_CALL = frozenset({
    "cudaFree", "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operation:
    """Work of a stream, or a call of a host thread.

    Attributes:
        event: the number of its event. The nodes of a graph have the same.
        work: the event or node.
        stream: the stream; a launch without a number has one of its own; None of a call.
        blocking: whether the stream and the legacy stream wait for each other.
        host: the host thread that calls.
        nodes: of a node of a graph, the numbers of the operations that it waits for.
    """

    event: int
    work: Work
    stream: object
    blocking: bool
    host: int
    nodes: tuple[int, ...] = ()

    @property
    def is_launch(self) -> bool:
        """Whether it launches a kernel of the user."""
        return isinstance(self.work, Launch)

    @property
    def is_kernel(self) -> bool:
        """Whether it may take room on SMs, as copies and memsets by the driver's kernels do."""
        work = self.work
        return isinstance(work, Launch | Memset) or (isinstance(work, Copy) and work.kind == "d2d")

    @property
    def holds_queue(self) -> bool:
        """Whether it may take a hardware queue."""
        work = self.work
        if isinstance(work, Copy):
            return work.bytes <= _OWN_QUEUE_BYTES or work.kind == "d2d"
        if isinstance(work, RecordEvent) and work.timing:
            return True
        return self.is_node or isinstance(
            work, Launch | Memset | WaitValue | WriteValue | HostFunction
        )

    @property
    def is_held_call(self) -> bool:
        """Whether it is a call in which the host thread waits."""
        work = self.work
        if isinstance(work, HostCall):
            return work.waits is not None
        if isinstance(work, Copy) and self.stream is not None and not self.is_node:
            return work.blocking or not work.pinned
        return isinstance(work, Synchronize)

    @property
    def is_node(self) -> bool:
        """Whether it is a node of a graph."""
        return isinstance(self.stream, _InGraph)


@dataclass(frozen=True, slots=True)
class _InGraph:
    """The stream in which a graph is launched."""

    stream: object


@dataclass(frozen=True, slots=True)
class Operations:
    """All operations of a program, and the order of calls that it forces.

    Launches may be called in any order, also those of one stream, and so may the calls of several
    host threads. All other work of a thread keeps its place in its stream; a call in which the
    thread waits, among all its calls; and records of a CUDA event and waits for it, among each
    other. Records of a CUDA event for which nothing waits keep no order with launches.

    Attributes:
        sequence: the program.
        rows: the operations; the launches first, as `Sequence.launches`, then all others in order.
        called_before: of each event those that are called before it in any case.
        silent: the events that delay nothing: records for which neither a stream nor a host waits.
    """

    sequence: Sequence
    rows: tuple[Operation, ...]
    called_before: tuple[Mask, ...]
    silent: frozenset[int] = frozenset()
    started: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def launches(self) -> int:
        """Number of operations that are launches."""
        return len(self.sequence.launches)


def check_events(owner: str, sequence: Sequence) -> None:
    """Checks that a program has only events that the analysis covers, and not too many. Raises
    ValueError: naming the event."""
    if len(sequence) > MAX_EVENTS:
        raise ValueError(
            f"{owner}: {len(sequence)} events with other work than launches, at most {MAX_EVENTS}"
        )
    completion_events = {
        launch.completion_event
        for launch in sequence.launches
        if launch.completion_event is not None
    }
    for number, event in enumerate(sequence):
        nodes = event.graph.nodes if isinstance(event, GraphLaunch) else (event,)
        for node in nodes:
            waited = node.event if isinstance(node, WaitEvent | Synchronize) else None
            if waited is not None and waited in completion_events:
                raise ValueError(
                    f"{owner}: event {number}, {shown(node)}, waits for a launch's "
                    "completion_event, which is not looked at"
                )
        if isinstance(event, GraphLaunch) and event.graph.has_conditionals:
            raise ValueError(
                f"{owner}: event {number} launches a graph with a conditional node. The driver's "
                "kernels that decide there need an SM, too, and are not looked at; predict plays "
                "them"
            )


def other_work(sequence: Sequence) -> tuple[Work, ...]:
    """Returns all work other than launches, in order, that of graphs included."""
    work: list[Work] = []
    for event in sequence:
        if isinstance(event, GraphLaunch):
            work += event.graph.transfers
        elif not isinstance(event, Launch | Release):
            work.append(event)
    return tuple(work)


def operations_of(sequence: Sequence, after: Iterable[tuple[int, int]] = ()) -> Operations:
    """Returns the operations of a program.

    Args:
        sequence: the program, for one GPU.
        after: pairs of operations; the second is called only when the first has started whole, or,
            if it is no launch, has ended.

    Raises:
        ValueError: the pairs and the program force operations before themselves.
    """
    blocking = _blocking_streams(sequence)
    operations: list[Operation] = []
    edges: list[tuple[int, int]] = []  # of graphs
    for number, event in enumerate(sequence):
        if isinstance(event, GraphLaunch):
            stream, is_blocking = _InGraph(event.stream), blocking.get(event.stream, True)
            offset = len(operations)
            edges += [(offset + first, offset + second) for first, second in event.graph.edges]
            operations += [
                Operation(number, node, stream, is_blocking, event.host)
                for node in event.graph.nodes
            ]
        elif not isinstance(event, Release):
            operations.append(_operation(number, event, blocking))
    order = sorted(range(len(operations)), key=lambda k: not operations[k].is_launch)
    rows = [operations[k] for k in order]
    new_number = {k: number for number, k in enumerate(order)}
    for first, second in edges:
        row = rows[new_number[second]]
        rows[new_number[second]] = replace(row, nodes=(*row.nodes, new_number[first]))
    started: dict[int, tuple[int, ...]] = {}
    pairs = []
    for first, second in after:
        started[second] = (*started.get(second, ()), first)
        pairs.append((rows[first].event, rows[second].event))
    unawaited = _unawaited(sequence, {number for pair in pairs for number in pair})
    earlier = _called_before(sequence, rows, pairs, unawaited)
    silent = unawaited - _awaited_by_stream(sequence, blocking)
    return Operations(sequence, tuple(rows), earlier, silent, started)


def stream_of(operation: Operation) -> object:
    """Returns the stream of an operation or graph node; None: it is a call."""
    stream = operation.stream
    return stream.stream if isinstance(stream, _InGraph) else stream


def _operation(number: int, event: Event, blocking: dict[object, bool]) -> Operation:
    """Returns the operation of an event."""
    host = getattr(event, "host", 0)
    if isinstance(event, HostCall | Synchronize):
        return Operation(number, event, None, False, host)
    stream = getattr(event, "stream", None)
    if stream is None:
        return Operation(
            number, event, ("of event", number), not getattr(event, "non_blocking", False), host
        )
    return Operation(number, event, stream, blocking.get(stream, True), host)


def _blocking_streams(sequence: Sequence) -> dict[object, bool]:
    """Returns for each stream whether it is a blocking one, which the legacy stream waits for, as
    its work says."""
    return {
        event.stream: not event.non_blocking
        for event in sequence
        if isinstance(event, Launch | GraphLaunch | Copy | Memset | HostFunction)
        and event.stream is not None
    }


def _unawaited(sequence: Sequence, kept: Set[int]) -> frozenset[int]:
    """Returns the numbers of the records without timing that nothing waits for, but for those in
    ``kept``."""
    others = (event for event in sequence if not isinstance(event, RecordEvent))
    awaited = {number for event in others for number in _cuda_events(event)}
    return frozenset(
        k
        for k, event in enumerate(sequence)
        if isinstance(event, RecordEvent)
        and event.stream != LEGACY_STREAM  # others wait for that one
        and not event.timing  # it holds a hardware queue
        and event.event not in awaited
        and k not in kept
    )


def _awaited_by_stream(sequence: Sequence, blocking: dict[object, bool]) -> frozenset[int]:
    """Returns the numbers of the records that a host thread waits for by waiting for their stream,
    as they may be its only work. Such a record waits for the legacy stream, and so the thread does.
    """
    awaited_streams = {
        event.stream
        for event in sequence
        if isinstance(event, Synchronize) or (isinstance(event, HostCall) and event.waits)
    }
    return frozenset(
        k
        for k, event in enumerate(sequence)
        if isinstance(event, RecordEvent)
        and event.stream in awaited_streams
        and blocking.get(event.stream, True)
    )


def _called_before(
    sequence: Sequence, rows: list[Operation], pairs: list[tuple[int, int]], unawaited: Set[int]
) -> tuple[Mask, ...]:
    """Returns for each event a mask of the events that are called before it in every order of
    calls. Bit k stands for event k."""
    calls = {row.event for row in rows if row.is_held_call}
    free = {k for k, event in enumerate(sequence) if isinstance(event, Launch)} | unawaited
    before: list[Mask] = [
        mask(
            k
            for k in range(number)
            if not {k, number} <= free
            and _keep_order(sequence[k], sequence[number], bool({k, number} & calls))
        )
        for number in range(len(sequence))
    ]
    for first, second in pairs:
        before[second] |= 1 << first
    return _transitive_closure(before)


def _keep_order(first: Event, second: Event, waits: bool) -> bool:
    """Returns whether the second event is called after the first in every order of calls, as in the
    program."""
    if getattr(first, "host", 0) != getattr(second, "host", 0):
        return False
    is_same_stream = _stream(first) == _stream(second) is not None
    return is_same_stream or waits or not _cuda_events(first).isdisjoint(_cuda_events(second))


def _stream(event: Event) -> object:
    """Returns the stream of an event; None: a call that is in no stream."""
    is_call = isinstance(event, HostCall | Synchronize)
    return None if is_call else getattr(event, "stream", None)


def _cuda_events(event: Event) -> frozenset[int]:
    """Returns the numbers of CUDA events that an event, or its nodes, records or waits for."""
    nodes = event.graph.nodes if isinstance(event, GraphLaunch) else (event,)
    marks = (node for node in nodes if isinstance(node, RecordEvent | WaitEvent | Synchronize))
    return frozenset(mark.event for mark in marks if mark.event is not None)


def _transitive_closure(before: list[Mask]) -> tuple[Mask, ...]:
    """Returns masks that also have what is before an event through other events. Raises ValueError:
    an event is before itself.

    Args:
        before: of each event a mask of events that are before it.
    """
    closed = list(before)
    remaining = set(range(len(closed)))
    done: Mask = 0
    while remaining:
        free = {k for k in remaining if not before[k] & ~done}
        if not free:
            raise ValueError(
                "coresident.after: a circle with the order of the sequence: events "
                f"{sorted(remaining)[:5]} would wait for themselves"
            )
        for k in free:
            closed[k] = functools.reduce(
                operator.or_, map(closed.__getitem__, members(before[k])), before[k]
            )
        remaining -= free
        done |= mask(free)
    return tuple(closed)


def queue_users(rows: Iterable[Operation]) -> int:
    """Returns how many streams, and first nodes of graphs, take a hardware queue."""
    streams: set[object] = set()
    for number, row in enumerate(rows):
        if row.holds_queue:
            streams.add(("node", number) if row.is_node and not row.nodes else stream_of(row))
    return len(streams)


def shares_queues(rows: Iterable[Operation], spec: DeviceSpec) -> bool:
    """Returns whether two streams may share a hardware queue."""
    return queue_users(rows) > spec.hardware_queues
