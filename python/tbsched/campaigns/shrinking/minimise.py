"""Makes a failing sequence locally minimal in its own terms: events and numbers.

Hypothesis shrinks what it drew, in steps of the tables that it drew from. Here launches go together
with their releases, every number goes down to the last that still fails, graphs become launches,
and what is special about a launch goes.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

from tbsched.campaigns.space.options import SequenceOptions
from tbsched.program.events.kinds import Control
from tbsched.program.events.transfers import Transfer
from tbsched.program.partition import Partition
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Conditional,
    Copy,
    Event,
    Graph,
    GraphLaunch,
    HostCall,
    HostFunction,
    Launch,
    Memset,
    RecordEvent,
    Release,
    Sequence,
    Stream,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
    with_launches,
)

Fails: TypeAlias = Callable[[Sequence], bool]
SHORTEST = 1e-6  # seconds: what a duration shrinks to
# What few launches have, and the value of those that do not.
_WAYS: dict[str, bool | None] = {
    "cooperative": False,
    "programmatic": False,
    "trigger": None,
    "memory_wait": None,
    "completion_event": None,
    "non_blocking": False,
    "first_use": False,
    "delay": None,
}


@dataclass(frozen=True, slots=True)
class Floors:
    """What a launch's fields shrink to; the number of blocks shrinks to one cluster.

    A partition shrinks to the whole GPU, if that is the first of ``partitions``, or to the smallest
    of them and of the sequence's own.
    """

    registers: int
    carveout: int | None
    local_memory: int
    priority: int
    partitions: tuple[Partition | None, ...] = (None,)

    @classmethod
    def of(cls, options: SequenceOptions) -> Floors:
        """Returns the values that sequences of these options shrink to."""
        return cls(
            registers=options.min_registers,
            carveout=options.carveouts[0],
            local_memory=min(options.local_memory),
            priority=options.priorities[0],
            partitions=options.partitions,
        )


def size(sequence: Sequence) -> tuple[int, ...]:
    """Returns a sort key that puts smaller sequences first.

    A graph counts as an event more than its nodes and edges do, and so does one in a graph.
    """
    launches = sequence.launches
    graphs = [event.graph for event in sequence if isinstance(event, GraphLaunch)]
    return (
        len(launches),
        len(sequence) + sum(_count_parts(graph) for graph in graphs),
        sum(getattr(launch, name) != usual for launch in launches for name, usual in _WAYS.items()),
        sum(event.host != 0 for event in sequence if not isinstance(event, Release)),
        sum(len(launch.partition) for launch in launches if launch.partition is not None),
        sum(launch.blocks for launch in launches),
        sum(launch.threads for launch in launches),
        sum(launch.registers for launch in launches),
        sum(launch.shared_memory for launch in launches),
        sum(launch.local_memory for launch in launches),
    )


def minimise(sequence: Sequence, fails: Fails, floors: Floors) -> Sequence:
    """Returns a smaller sequence that still fails. It fails no longer if any event is removed, or
    any of its numbers is less by 1.

    Args:
        sequence: it fails.
        fails: returns whether a sequence fails. A caller that runs out of time answers False from
            then on.
        floors: the least value of each number.
    """
    while True:
        before = sequence
        sequence = _fewer_events(sequence, fails)
        for index in range(len(sequence.launches)):
            sequence = _smaller_launch(sequence, index, fails, floors)
        for stream in _numbered_streams(sequence):
            sequence = _plainer_stream(sequence, stream, fails, floors)
        if sequence == before:
            return sequence


def _fewer_events(sequence: Sequence, fails: Fails) -> Sequence:
    """Returns a sequence with as few events as possible that still fails."""
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in _with_one_less(sequence):
            if fails(candidate):
                sequence, shrunk = candidate, True
                break
    return sequence


def _with_one_less(sequence: Sequence) -> Iterator[Sequence]:
    """Yields smaller sequences: without a launch or another event, with a part of an event less, or
    with two host threads or streams made one."""
    for launch_index in reversed(range(len(sequence.launches))):
        if len(sequence.launches) > 1:
            with contextlib.suppress(ValueError):  # it is a graph's that others need
                yield without_launch(sequence, launch_index)
    for position, event in enumerate(sequence.events):
        before, after = sequence.events[:position], sequence.events[position + 1 :]
        match event:
            case Launch():
                pass
            case GraphLaunch():
                if len(sequence.launches) > len(event.launches):
                    with contextlib.suppress(ValueError):  # others free what it allocates
                        yield Sequence(before + after)
                for instead in _less_than(event):
                    with contextlib.suppress(ValueError):  # others in the stream have a partition
                        yield Sequence([*before, *instead, *after])
            case Copy() | Memset() | HostFunction():
                yield Sequence(before + after)
                for less in _less_than_transfer(event):
                    yield Sequence([*before, less, *after])
            case HostCall():
                yield Sequence(before + after)
                if event.waits is not None:
                    yield Sequence([*before, replace(event, waits=None, stream=None), *after])
                if event.duration:
                    yield Sequence([*before, replace(event, duration=0.0), *after])
            case (
                Release() | RecordEvent() | WaitEvent() | Synchronize() | WriteValue() | WaitValue()
            ):
                yield Sequence(before + after)
            case _:
                assert_never(event)
        if not isinstance(event, Release) and event.host:
            yield Sequence([*before, replace(event, host=0), *after])
    # What fills the GPU before the launch that shows the difference can often be one launch.
    for launch_index, launch in enumerate(sequence.launches):
        try:
            fewer = without_launch(sequence, launch_index)
        except ValueError:  # it is a graph's that others need
            continue
        for index, rest in enumerate(fewer.launches):
            for merged in (_with_blocks_of(rest, launch), _with_blocks_of(launch, rest)):
                with contextlib.suppress(ValueError):  # invalid for a node, or for its stream
                    yield _with_launch(fewer, index, merged)


def _less_than(event: GraphLaunch) -> Iterator[list[Event]]:
    """Yields what may replace an event to make it smaller, as a list of events."""
    graph, stream = event.graph, event.stream
    yield [
        replace(node, stream=stream, non_blocking=event.non_blocking, host=event.host)
        for node in event.launches
    ]
    yield [*event.launches]
    if graph.is_nested or graph.memory:
        yield [replace(event, graph=Graph(graph.nodes, graph.edges))]
        for position, part in enumerate(graph.parts):
            if isinstance(part, Conditional) and part.times > 1:
                fewer = Conditional(part.runs[:-1])
                parts = (*graph.parts[:position], fewer, *graph.parts[position + 1 :])
                yield [replace(event, graph=Graph(parts, graph.part_edges))]
        return
    for position, node in enumerate(graph.nodes):
        if not isinstance(node, Launch):
            yield [replace(event, graph=_without_node(graph, position))]
        if isinstance(node, Transfer):
            for less in _less_than_transfer(node):
                nodes = (*graph.nodes[:position], less, *graph.nodes[position + 1 :])
                yield [replace(event, graph=Graph(nodes, graph.edges))]
    for position in range(len(graph.edges)):
        edges = graph.edges[:position] + graph.edges[position + 1 :]
        with contextlib.suppress(ValueError):  # nodes of a CUDA event then have no order
            yield [replace(event, graph=Graph(graph.nodes, edges))]


def _count_parts(graph: Graph) -> int:
    """Returns how many nodes and edges it has, with one more for each graph in it."""
    nested = [part for part in graph.parts if isinstance(part, Graph | Conditional)]
    inner = [part.graph if isinstance(part, Conditional) else part for part in nested]
    return len(graph.nodes) + len(graph.edges) + sum(1 + _count_parts(child) for child in inner)


def _less_than_transfer(transfer: Transfer) -> Iterator[Transfer]:
    """Yields simpler forms of a copy, memset or host function."""
    if isinstance(transfer, Copy) and transfer.blocking:
        yield replace(transfer, blocking=False)
    if isinstance(transfer, Copy) and not transfer.pinned:
        yield replace(transfer, pinned=True)
    if transfer.stream is not None and not transfer.non_blocking:
        yield replace(transfer, stream=None)
    if isinstance(transfer, HostFunction):
        if transfer.duration:
            yield replace(transfer, duration=0.0)
        return
    if transfer.duration is not None:
        yield replace(transfer, duration=None)
    for smaller_size in (1, transfer.bytes // 2):
        if 0 < smaller_size < transfer.bytes:
            yield replace(transfer, bytes=smaller_size)


def _with_blocks_of(launch: Launch, other: Launch) -> Launch:
    more = -(-other.blocks // launch.cluster) * launch.cluster
    return replace(launch, **_blocks(launch, launch.blocks + more))


def _blocks(launch: Launch, blocks: int) -> dict[str, Any]:
    """Returns the fields of the launch for a number of blocks."""
    if not isinstance(launch.duration, tuple):
        return {"blocks": blocks}
    durations = itertools.islice(itertools.cycle(launch.duration), blocks)
    return {"blocks": blocks, "duration": tuple(durations)}


def without_launch(sequence: Sequence, launch: int) -> Sequence:
    """Returns the sequence without its ``launch``-th launch and that launch's release.

    Raises:
        AssertionError: an event of an unknown kind.
    """
    events: list[Event] = []
    last_launch = -1
    for event in sequence.events:
        if isinstance(event, Launch):
            last_launch += 1
            if last_launch != launch:
                events.append(event)
        elif isinstance(event, GraphLaunch):
            events += _without_launch(event, launch - last_launch - 1)
            last_launch += len(event.launches)
        elif isinstance(event, Release):
            if event.launch != launch:
                events.append(Release(event.launch - (event.launch > launch)))
        elif isinstance(event, Transfer | Control):
            events.append(event)
        else:
            assert_never(event)
    return Sequence(events)


def _without_launch(event: GraphLaunch, launch: int) -> list[Event]:
    """Returns the graph without a launch, if it has that one."""
    if not 0 <= launch < len(event.launches):
        return [event]
    if len(event.launches) == 1:
        return []
    nodes = [n for n, node in enumerate(event.graph.nodes) if isinstance(node, Launch)]
    return [replace(event, graph=_without_node(event.graph, nodes[launch]))]


def _without_node(graph: Graph, node: int) -> Graph:
    """Returns the graph without a node and its edges; nodes of CUDA events keep their order."""
    remaining = [edge for edge in graph.edges if node not in edge]
    if any(isinstance(other_node, RecordEvent | WaitEvent) for other_node in graph.nodes):
        ahead = [before for before, after in graph.edges if after == node]
        behind = [after for before, after in graph.edges if before == node]
        remaining += [(before, after) for before in ahead for after in behind]
        remaining = [*dict.fromkeys(remaining)]
    edges = [(before - (before > node), after - (after > node)) for before, after in remaining]
    return Graph((*graph.nodes[:node], *graph.nodes[node + 1 :]), edges)


def _with_launch(sequence: Sequence, index: int, launch: Launch) -> Sequence:
    launches = sequence.launches
    return with_launches(sequence, (*launches[:index], launch, *launches[index + 1 :]))


def _smaller_launch(sequence: Sequence, index: int, fails: Fails, floors: Floors) -> Sequence:
    """Returns the sequence with one launch made smaller, as long as it still fails."""

    def attempt(**changes: Any) -> bool:
        nonlocal sequence
        try:
            launch = replace(sequence.launches[index], **changes)
            candidate = _with_launch(sequence, index, launch)
        except ValueError:  # another than others of its stream
            return False
        if candidate == sequence or not fails(candidate):
            return False
        sequence = candidate
        return True

    attempt(cluster=1)
    attempt(carveout=floors.carveout)
    attempt(priority=floors.priority)
    attempt(stream=None)
    for name, usual in _WAYS.items():
        attempt(**{name: usual})
    any(attempt(partition=part) for part in _smaller_partitions(sequence, index, floors))
    if sequence.timed:
        attempt(duration=SHORTEST)
    cluster = sequence.launches[index].cluster
    _lower(
        lambda clusters: attempt(**_blocks(sequence.launches[index], clusters * cluster)),
        sequence.launches[index].blocks // cluster,
        1,
    )
    for field, floor in (
        ("threads", 1),
        ("registers", floors.registers),
        ("shared_memory", 0),
        ("local_memory", floors.local_memory),
    ):
        _lower(
            lambda value, field=field: attempt(**{field: value}),  # type: ignore[misc]
            getattr(sequence.launches[index], field),
            floor,
        )
    return sequence


def _smaller_partitions(
    sequence: Sequence, index: int, floors: Floors
) -> Iterator[Partition | None]:
    """Yields what a launch may have instead of its partition, the smallest first."""
    partition = sequence.launches[index].partition
    if partition is None:
        return
    if floors.partitions[0] is None:
        yield None
    known = {*floors.partitions, *(launch.partition for launch in sequence.launches)}
    yield from sorted(
        (part for part in known if part is not None and len(part) < len(partition)),
        key=lambda part: (len(part), part.sms),
    )


def _plainer_stream(sequence: Sequence, stream: Stream, fails: Fails, floors: Floors) -> Sequence:
    """Returns the sequence with simpler properties that all launches of a stream share, as far as
    it still fails."""

    def attempt(**changes: Any) -> bool:
        nonlocal sequence
        candidate = _with_stream(sequence, stream, **changes)
        if candidate == sequence or not fails(candidate):
            return False
        sequence = candidate
        return True

    attempt(non_blocking=False)
    launches = [n for n, launch in enumerate(sequence.launches) if launch.stream == stream]
    if launches:
        smaller = _smaller_partitions(sequence, launches[0], floors)
        any(attempt(partition=part) for part in smaller)
    return sequence


def _with_stream(sequence: Sequence, stream: Stream, **changes: Any) -> Sequence:
    """Returns the sequence with such launches, and other work as far as it has it, in a stream."""

    def changed(event: Event) -> Event:
        if isinstance(event, Launch) and event.stream == stream:
            return replace(event, **changes)
        of_stream = isinstance(event, GraphLaunch | Transfer) and event.stream == stream
        if of_stream and "partition" not in changes:
            return replace(event, **changes)
        return event

    return Sequence([changed(event) for event in sequence])


def _numbered_streams(sequence: Sequence) -> list[Stream]:
    """Returns the streams of a sequence with numbers, each once."""
    streams = dict.fromkeys(
        event.stream for event in sequence if isinstance(event, Launch | GraphLaunch | Transfer)
    )
    return [stream for stream in streams if stream is not None and stream != LEGACY_STREAM]


def _lower(attempt: Callable[[int], bool], high: int, low: int) -> None:
    """Calls attempt(n) with lower and lower numbers below ``high``, from ``low`` on, until it has
    succeeded for one and failed for the number before. It has succeeded for ``high``."""
    if high <= low or attempt(low):
        return
    while high - low > 1:
        middle = (low + high) // 2
        if attempt(middle):
            high = middle
        else:
            low = middle
