"""Decodes the bytes as which timed programs are drawn: a row per launch, as if held.

The bytes of a row beyond those of :class:`LaunchTables` say in which stream the launch is, for how
long it runs and what it waits for.
"""

from __future__ import annotations

import collections
import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tbsched.campaigns.space.launch_tables import (
    COOPERATIVE,
    PARTITION,
    PRIORITY,
    LaunchTables,
)
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.duration import Drawn
from tbsched.program.events.graph import Memory, Node
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Event,
    Graph,
    HostCall,
    HostFunction,
    Launch,
    MemAlloc,
    MemFree,
    Memset,
    RecordEvent,
    Sequence,
    Stream,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)

ALIKE, EACH = "alike", "each"
_STREAMS: tuple[Stream, ...] = (0, 1, 2, 3)
_CUDA_EVENTS = 2
# Few numbers, so that much happens at the same time.
_SECONDS = (1e-6, 2e-6, 3e-6, 7e-6, 2e-5, 5e-5)
_NOT_AT_ALL = (None,) * 6
_EVENTS = tuple(
    kind(event, stream)
    for kind in (RecordEvent, WaitEvent)
    for event in range(_CUDA_EVENTS)
    for stream in (*_STREAMS, LEGACY_STREAM)
)
_TRANSFERS = (
    Memset(64), Memset(1 << 20), Copy(64, "h2d"), Copy(1 << 14, "h2d"), Copy(64, "d2h"),
    Copy(1 << 20, "d2d"), Copy(64, "d2h", duration=3e-6), Memset(64, duration=0.0),
)  # fmt: skip
_COPIES: tuple[Copy | Memset, ...] = (
    *_TRANSFERS,
    Copy(1 << 14, "h2d", pinned=False),
    Copy(64, "d2h", blocking=True),
    Copy(1 << 20, "d2h", pinned=False, blocking=True),
)
_SYNCHRONISATIONS = (
    Synchronize(), *(Synchronize(stream=stream) for stream in (*_STREAMS, LEGACY_STREAM)),
    *(Synchronize(event=event) for event in range(_CUDA_EVENTS)),
)  # fmt: skip
_FUNCTIONS = tuple(HostFunction(seconds) for seconds in (0.0, 2e-6, 2e-5))
_CALLS = (
    HostCall("call", 2e-6), HostCall("call", 2e-6, waits="device"),
    *(HostCall("call", 2e-6, waits="stream", stream=stream) for stream in (0, LEGACY_STREAM)),
)  # fmt: skip
_MARKS = tuple(kind(event) for kind in (RecordEvent, WaitEvent) for event in range(_CUDA_EVENTS))
_VALUES = tuple(
    kind("value", stream=stream)
    for kind in (WriteValue, WaitValue)
    for stream in (*_STREAMS, LEGACY_STREAM)
)
# Field: what its byte picks from, what is usual first.
_CHOICES: dict[str, tuple[Any, ...]] = {
    "before": (*(None,) * len(_EVENTS), *_EVENTS),
    "also_before": (*(None,) * len(_EVENTS), *_EVENTS),
    "stream": (None, *_STREAMS, LEGACY_STREAM),
    "kind": (ALIKE, EACH, "uniform", "normal", "lognormal", "exponential"),
    "duration": _SECONDS,
    "second_duration": (None, *_SECONDS),
    "third_duration": (None, *_SECONDS),
    "seed": tuple(range(10)),
    "programmatic": (False, True),
    "trigger": (*_NOT_AT_ALL, *_SECONDS),
    "memory_wait": (*_NOT_AT_ALL, *_SECONDS),
    "completion_event": (*_NOT_AT_ALL, *range(_CUDA_EVENTS)),
    "non_blocking": tuple(range(2 ** len(_STREAMS))),  # bit k: stream k, of the first launch's
    # Number of launches from this one on that are a graph's nodes; 0: it is in a stream.
    "nodes": (*(0,) * 12, 1, 2, 3, 4, 5),
    "predecessors": (0, 0, 0, 0, *range(8)),  # bit k: the node k + 1 before it
    # A copy or memset between a launch and what it waits for, or what waits for it.
    "transfer": (*(None,) * 2 * len(_TRANSFERS), *_TRANSFERS),
    "again": (*_NOT_AT_ALL, *_STREAMS, LEGACY_STREAM),  # the graph's second launch
    # A copy or memset in a stream, before the launch or the graph.
    "copy": (*(None,) * 3 * len(_COPIES), *_COPIES),
    "copy_stream": (None, *_STREAMS, LEGACY_STREAM),
    "synchronize": (*(None,) * 2 * len(_SYNCHRONISATIONS), *_SYNCHRONISATIONS),
    "host": (*(0,) * 6, 1, 2),
    # A host function in the stream of a copy, or behind a node of a graph.
    "function": (*(None,) * 4 * len(_FUNCTIONS), *_FUNCTIONS),
    "call": (*(None,) * 4 * len(_CALLS), *_CALLS),
    "value": (*(None,) * 2 * len(_VALUES), *_VALUES),
    "child": (*(False,) * 7, True),  # whether the launch of a graph is in a child graph
    # What the launch of a graph waits for, or what waits for it.
    "mark": (*(None,) * 2 * len(_MARKS), *_MARKS),
    "memory": (*(False,) * 7, True),  # whether the graph allocates memory for the launch
}


@dataclass(frozen=True, slots=True)
class _Run:
    """Drawn settings of a launch: a value of each of _CHOICES."""

    before: RecordEvent | WaitEvent | None
    also_before: RecordEvent | WaitEvent | None
    stream: Stream | None
    kind: str
    duration: float
    second_duration: float | None
    third_duration: float | None
    seed: int
    programmatic: bool
    trigger: float | None
    memory_wait: float | None
    completion_event: int | None
    non_blocking: bool
    nodes: int
    predecessors: int
    transfer: Copy | Memset | None
    again: Stream | None
    copy: Copy | Memset | None
    copy_stream: Stream | None
    synchronize: Synchronize | None
    host: int
    function: HostFunction | None
    call: HostCall | None
    value: WriteValue | WaitValue | None
    child: bool
    mark: RecordEvent | WaitEvent | None
    memory: bool

    @classmethod
    def of(cls, drawn: bytes) -> _Run:
        picked = zip(_CHOICES.items(), drawn, strict=True)
        return cls(**{name: values[byte * len(values) >> 8] for (name, values), byte in picked})

    def events(self, non_blocking: int) -> list[Event]:
        """Returns the events that were drawn before the launch. ``non_blocking``: bit k says
        whether stream k is a non-blocking one."""
        stream = self.copy_stream
        is_non_blocking = _is_non_blocking(stream, non_blocking)
        copy, function = (
            work and replace(work, stream=stream, non_blocking=is_non_blocking)
            for work in (self.copy, self.function)
        )
        drawn = (self.before, copy, self.also_before, function, self.synchronize, self.call)
        events: list[Event] = [
            replace(event, host=self.host) for event in drawn if event is not None
        ]
        # One thread of the host makes all calls of values: a wait comes after the write.
        return [*events, *([] if self.value is None else [self.value])]

    @property
    def graph_streams(self) -> tuple[Stream, ...]:
        """Streams in which the graph that begins with this node is launched, in this order."""
        first: Stream = 0 if self.stream is None else self.stream
        return (first,) if self.again is None else (first, self.again)

    def duration_of(self, blocks: int) -> float | tuple[float, ...] | Drawn:
        """Returns the duration of a launch of so many blocks, as ``Launch`` takes it."""
        if self.kind == ALIKE:
            return self.duration
        if self.kind == EACH:
            drawn = (self.duration, self.second_duration, self.third_duration)
            durations = [seconds for seconds in drawn if seconds is not None]
            return tuple(itertools.islice(itertools.cycle(durations), blocks))
        spread = 0.0 if self.kind == "exponential" else self.duration / 4
        return Drawn(self.kind, self.duration, spread, self.seed)


@dataclass(frozen=True, slots=True)
class ProgramTables:
    """Decoder of the bytes of a program, a row of ``width`` bytes per launch."""

    launches: LaunchTables
    most_launches: int

    @classmethod
    def of(cls, spec: DeviceSpec, options: SequenceOptions) -> ProgramTables:
        return cls(LaunchTables.of(spec, options), options.max_launches)

    @property
    def width(self) -> int:
        return self.launches.width + len(_CHOICES)

    def build(self, drawn: list[bytes]) -> Sequence:
        """Returns the program of the rows of its launches."""
        runs = [_Run.of(row[-len(_CHOICES) :]) for row in drawn]
        groups = _groups(runs)
        launches = self._launches(drawn, runs, groups)
        events: list[Event] = []
        free_launches = self.most_launches - len(runs)
        for group in groups:
            for index in group:
                events += runs[index].events(runs[0].non_blocking)
            first = runs[group[0]]
            if not first.nodes:
                events.append(_in_stream(launches[group[0]], first, runs[0].non_blocking))
                continue
            graph = _graph({index: (launches[index], runs[index]) for index in group})
            streams = first.graph_streams[: 1 + free_launches // len(group)]
            free_launches -= len(group) * (len(streams) - 1)
            for stream in streams:
                is_non_blocking = _is_non_blocking(stream, runs[0].non_blocking)
                launched = graph.launch(stream, non_blocking=is_non_blocking, host=first.host)
                events.append(launched)
        return Sequence(_with_values(events))

    def _launches(self, drawn: list[bytes], runs: list[_Run], groups: list[range]) -> list[Launch]:
        """Returns the launch of each row, not yet in a stream."""
        tables = self.launches
        rows = tables.picked(tables.drawn(drawn), np.array([tables.everything] * len(drawn)))
        graphs = [group for group in groups if runs[group[0]].nodes]
        whole_gpu: set[Stream | None] = {LEGACY_STREAM}
        whole_gpu.update(run.copy_stream for run in runs if run.copy or run.function)
        for group in graphs:
            rows[group, PARTITION] = -1
            rows[group, COOPERATIVE] = 0
            whole_gpu.update(runs[group[0]].graph_streams)
        first_by_stream: dict[Stream, int] = {}
        for index in (group[0] for group in groups if not runs[group[0]].nodes):
            row, stream = rows[index], runs[index].stream
            if stream is not None:
                first = rows[first_by_stream.setdefault(stream, index)]
                row[PRIORITY] = 0 if stream == LEGACY_STREAM else first[PRIORITY]
                row[PARTITION] = -1 if stream in whole_gpu else first[PARTITION]
        return tables.made_of(tables.fitted(rows))


def _with_values(events: list[Event]) -> list[Event]:
    """Returns the events with a name and a number for each value: each stream writes its own value,
    which ascends.

    A wait is for the last one written so far. So it ends, whatever the order of the streams is.
    """
    written: collections.Counter[Stream] = collections.Counter()
    name, value = "none", 0
    with_values: list[Event] = []
    for event in events:
        if isinstance(event, WriteValue):
            written[event.stream] += 1
            name, value = f"of {event.stream}", written[event.stream]
        if isinstance(event, WriteValue | WaitValue):
            with_values.append(replace(event, name=name, value=value))
        else:
            with_values.append(event)
    return with_values


def _groups(runs: list[_Run]) -> list[range]:
    """Returns the launches of each stream event: one launch, or all nodes of a graph."""
    groups: list[range] = []
    begin = 0
    while begin < len(runs):
        end = min(begin + max(1, runs[begin].nodes), len(runs))
        groups.append(range(begin, end))
        begin = end
    return groups


def _in_stream(launch: Launch, run: _Run, non_blocking: int) -> Launch:
    """Returns a launch with the stream, duration and dependences of its row."""
    return replace(
        launch,
        stream=run.stream,
        duration=run.duration_of(launch.blocks),
        # The streams of a green context are.
        non_blocking=launch.partition is not None or _is_non_blocking(run.stream, non_blocking),
        programmatic=run.programmatic and run.stream is not None,
        trigger=run.trigger,
        memory_wait=run.memory_wait,
        completion_event=run.completion_event,
        host=run.host,
    )


def _is_non_blocking(stream: Stream | None, bits: int) -> bool:
    return isinstance(stream, int) and bool(bits >> stream & 1)


def _graph(drawn: dict[int, tuple[Launch, _Run]]) -> Graph:
    """Returns the graph of launches, by their numbers."""
    nodes: list[Node | Memory | Graph] = []
    edges: dict[tuple[int, int], None] = {}
    last_nodes: list[int] = []  # by launch: the node that others wait for
    last_mark: dict[int, int] = {}  # by CUDA event: nodes of one have an order
    for index, (number, (launch, run)) in enumerate(drawn.items()):
        first = len(nodes)
        for bit in range(index):
            if run.predecessors >> bit & 1:
                edges[last_nodes[index - 1 - bit], first] = None
        launch_nodes = _nodes_of(
            replace(launch, duration=run.duration_of(launch.blocks)), run, number
        )
        if run.child:
            nodes.append(Graph(launch_nodes, itertools.pairwise(range(len(launch_nodes)))))
        else:
            nodes += launch_nodes
            edges |= dict.fromkeys(itertools.pairwise(range(first, len(nodes))))
        if run.mark is not None:
            mark = first if run.child else first + launch_nodes.index(run.mark)
            if run.mark.event in last_mark:
                edges[last_mark[run.mark.event], mark] = None
            last_mark[run.mark.event] = mark
        last_nodes.append(len(nodes) - 1)
    return Graph(nodes, [*edges])


def _nodes_of(launch: Launch, run: _Run, launch_number: int) -> list[Node | Memory]:
    """Returns a launch and the nodes drawn with it, each behind the one before."""
    nodes: list[Node | Memory] = [*_with_transfer(launch, run)]
    if isinstance(run.mark, WaitEvent):
        nodes.insert(0, run.mark)
    elif run.mark is not None:
        nodes.append(run.mark)
    if run.memory:
        name = f"of launch {launch_number}"
        nodes = [MemAlloc(name, 64), *nodes, MemFree(name)]
    return nodes


def _with_transfer(launch: Launch, run: _Run) -> list[Node]:
    """Returns a launch and its copy, memset or function; copies from the host come first."""
    if run.transfer is None:
        return [launch] if run.function is None else [launch, run.function]
    if isinstance(run.transfer, Copy) and run.transfer.kind == "h2d":
        return [run.transfer, launch]
    return [launch, run.transfer]
