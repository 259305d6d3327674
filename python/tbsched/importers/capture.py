"""tbsched's own captures: JSON lines, as libtbsched_capture.so writes them."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from tbsched.errors import on_one_line, shown
from tbsched.importers.assembly.graphs import edges_through
from tbsched.importers.reading.capture_lines import (
    MAX_INTEGER,
    Integers,
    Line,
    flag,
    integer,
    optional,
    sms_of,
    take_lines,
    text,
    three,
    times,
)
from tbsched.importers.reading.disturbance import sentence_about
from tbsched.importers.reading.joined import Joined, Waited
from tbsched.importers.reading.selection import Selection
from tbsched.importers.reading.stream_numbers import FileStream
from tbsched.importers.records import GraphCall, Kernel, Record, Recording, Transfer
from tbsched.program.activity import COPY, KERNEL, MEMSET, copy_name

NAME = "tbsched capture"
VERSION = 1
_KEY = b'{"tbsched_capture":'
_COPIES = {
    "h2d": "h2d", "h2a": "h2d", "d2h": "d2h", "a2h": "d2h", "d2d": "d2d", "a2a": "d2d",
    "a2d": "d2d", "d2a": "d2d", "p2p": "d2d",
}  # fmt: skip
_SHAPE = (
    "name", "grid", "block", "registers", "static_shared_memory", "dynamic_shared_memory",
    "local_memory", "cluster", "carveout", "cooperative",
)  # fmt: skip
_RUN_FIELDS = (
    "stream", "start_ns", "end_ns", "context", "device", "executable", "node", "channel", "row",
)  # fmt: skip
_OF_LAUNCH = ("shared_memory_executed", "priority", "programmatic", "first_use", "green_context")
_OF_TRANSFER = ("kind", "bytes", "pinned")


class _Work(NamedTuple):
    """A kernel, if ``kernel`` is the number of its shape, or a copy or memset."""

    call: int
    stream: FileStream
    start_ns: int
    end_ns: int
    channel: int | None
    node: int | None
    graph: int | None
    configured: int | None = None
    kernel: int | None = None
    moved: tuple[str, int, bool | None] | None = None


def takes(head: bytes) -> bool:
    """Returns whether a file with these first bytes is a capture."""
    return head.startswith(_KEY)


def read(path: Path, selection: Selection) -> Recording:
    """Returns what a capture recorded. Its last line may be cut: the process may have been killed.

    Raises:
        FileNotFoundError: no such file.
        ValueError: of a later version, or a line that cannot be; names the file and the line.
    """
    captured = _Captured()
    take_lines(path, captured.add)
    return captured.recording(selection)


@dataclass(slots=True)
class _Captured:
    """Takes the lines one by one; those of the GPU and of the host come in any order."""

    joined: Joined = field(default_factory=Joined)
    work: list[_Work] = field(default_factory=list)
    kernels: list[tuple[Any, ...]] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    devices: dict[int, tuple[str, int]] = field(default_factory=dict)
    device_of: dict[int, int] = field(default_factory=dict)  # by context
    contexts: dict[int, int] = field(default_factory=dict)  # of waits and records, by call
    green: set[int] = field(default_factory=set)
    null_streams: set[FileStream] = field(default_factory=set)
    streams: dict[FileStream, tuple[str, int]] = field(default_factory=dict)
    loading: set[int] = field(default_factory=set)
    own_work: list[tuple[int, int]] = field(default_factory=list)  # by the capture itself
    attributes: dict[int, tuple[bool, int | None]] = field(default_factory=dict)
    graphs: dict[int, tuple[int, FileStream]] = field(default_factory=dict)
    with_bodies: set[int] = field(default_factory=set)  # launches of graphs that ran bodies
    graph_captures: list[tuple[int, int]] = field(default_factory=list)  # captures of streams
    edges: list[tuple[int, int]] = field(default_factory=list)
    originals: dict[int, int] = field(default_factory=dict)
    connections: int | None = None
    issued: dict[int, str] = field(default_factory=dict)  # in words, by call
    ended: set[int] = field(default_factory=set)
    lost: int = 0
    failures: str = ""
    unfinished: int = 0
    is_whole: bool = False

    def add(self, line: object) -> None:
        """Adds a line, whose first key says what it is; an unknown kind is ignored. Raises
        TypeError or ValueError: one that cannot be."""
        if not isinstance(line, dict) or not line:
            raise ValueError(f"an object is needed, got {shown(line)}")
        take = _TAKES.get(next(iter(line)))
        if take is not None:
            take(self, line)

    def header(self, line: Line) -> None:
        """Takes the first line: the version, and the number of hardware queues."""
        version = integer(line, "tbsched_capture")
        if version > VERSION:
            raise ValueError(
                f"a capture of version {version}; this tbsched reads up to {VERSION}: install a "
                "later one"
            )
        self.connections = optional(line, "connections", 1)

    def device(self, line: Line) -> None:
        """Takes a line about a GPU: its name and number of SMs."""
        self.devices[integer(line, "device")] = text(line, "name"), sms_of(line)

    def context(self, line: Line) -> None:
        """Takes a line about a context: its GPU and its null stream."""
        context = integer(line, "context")
        self.device_of[context] = integer(line, "device")
        self.null_streams.add(FileStream(context, integer(line, "null_stream")))
        if line.get("green") is True:
            self.green.add(context)

    def stream(self, line: Line) -> None:
        """Takes a line about a stream: its kind and priority."""
        self.streams[_stream(line)] = text(line, "kind"), integer(line, "priority", -MAX_INTEGER)

    def function(self, line: Line) -> None:
        """Takes a line about a function of CUDA, to which calls refer by number."""
        _check_next(line, "function", self.functions)
        self.functions.append(text(line, "name"))

    def kernel(self, line: Line) -> None:
        """Takes a line about a kernel: its name, grid, and what its blocks use."""
        _check_next(line, "kernel", self.kernels)
        sizes = [optional(line, field) for field in _SHAPE[3:7]]
        cluster = math.prod(three(line, "cluster")) if "cluster" in line else 1
        self.kernels.append((
            text(line, "name"), three(line, "grid"), three(line, "block"), *sizes, cluster,
            optional(line, "carveout"), flag(line, "cooperative"),
        ))  # fmt: skip

    def call(self, line: Line) -> None:
        """Takes a line about a call that has returned."""
        start, end = times(line)
        number, function, thread = _CALL(line)
        _check_known("of", function, self.functions)
        name = self.functions[function]
        if "StreamBeginCapture" in name:
            self.graph_captures.append((start, MAX_INTEGER))
        elif "StreamEndCapture" in name and self.graph_captures:
            self.graph_captures[-1] = (self.graph_captures[-1][0], end)
        elif "failed" not in line:
            self.joined.add_call(number, name, 0, thread, start, end)
            return
        self.joined.activity.add_call(name, 0, thread, start, end, number)

    def ran(self, line: Line) -> None:
        """Takes a line about a kernel that has ended."""
        kernel = integer(line, "ran")
        _check_known("ran", kernel, self.kernels)
        configured = optional(line, "configured")
        self.work.append(_Work(*_ran(line), configured=configured, kernel=kernel))

    def copy(self, line: Line) -> None:
        """Takes a line about a copy or memset that has ended."""
        memories = {line.get("from"), line.get("to")}
        pinned = False if "pageable" in memories else True if "pinned" in memories else None
        kind = text(line, "copy")
        moved = _COPIES.get(kind, kind), integer(line, "bytes"), pinned
        self.work.append(_Work(*_ran(line), moved=moved))

    def memset(self, line: Line) -> None:
        """Takes a line about a memset that has ended."""
        self.work.append(_Work(*_ran(line), moved=("memset", integer(line, "memset"), None)))

    def event(self, line: Line) -> None:
        """Takes a line about a call that records a CUDA event in a stream."""
        call, stream = integer(line, "call"), _stream(line)
        self.joined.add_recorded(call, integer(line, "event"), stream, None)
        self.contexts[call] = integer(line, "context")

    def records_time(self, line: Line) -> None:
        """Takes a line about a call that records an event with timing."""
        self.joined.timed.add(integer(line, "timed"))

    def wait(self, line: Line) -> None:
        """Takes a line about a call that makes the host or a stream wait."""
        stream = _stream(line) if "stream" in line else None
        call, context = integer(line, "call"), optional(line, "context")
        self.joined.add_wait(call, Waited(stream, optional(line, "event")), None)
        if context is not None:
            self.contexts[call] = context

    def loads(self, line: Line) -> None:
        """Takes a line about a call that loads a function or a module."""
        if text(line, "loading") == "function":
            self.loading.add(integer(line, "call"))

    def overhead(self, line: Line) -> None:
        """Takes a line about a time that CUPTI itself took."""
        self.own_work.append(times(line))

    def given(self, line: Line) -> None:
        """Takes a line about the attributes of a launch."""
        programmatic, priority = (
            flag(line, "programmatic"),
            optional(line, "priority", -MAX_INTEGER),
        )
        self.attributes[integer(line, "attributes")] = bool(programmatic), priority

    def graph_launch(self, line: Line) -> None:
        """Takes a line about a call that launches an executable graph."""
        launched = integer(line, "executable"), _stream(line)
        self.graphs[integer(line, "graph_launch")] = launched

    def edge(self, line: Line) -> None:
        """Takes a line about an edge of a graph."""
        ends = line["edge"]
        if not isinstance(ends, list) or len(ends) != 2:
            raise ValueError(f"edge: two nodes are needed, got {shown(ends)}")
        self.edges.append((_node(ends[1]), _node(ends[0])))

    def node(self, line: Line) -> None:
        """Takes a line about a node that was cloned from another one."""
        self.originals[_node(line["node"])] = _node(line.get("clone_of"))

    def begun(self, line: Line) -> None:
        """Takes a line about an operation that was issued."""
        what = text(line, "what").replace("_", " ")
        name = f" of {on_one_line(text(line, 'name'))}" if "name" in line else ""
        stream, at = integer(line, "stream"), integer(line, "at") / 1e9
        self.issued[integer(line, "issued")] = f"{what}{name} in stream {stream}, at {at:.3f} s"

    def over(self, line: Line) -> None:
        """Takes a line about an issued operation that has ended."""
        self.ended.add(integer(line, "ended"))

    def unended(self) -> list[str]:
        """Returns what was issued and has not ended, in words; [] if the program ended."""
        if self.is_whole:
            return []
        ended = self.ended | {work.call for work in self.work if work.node is None}
        return [words for call, words in self.issued.items() if call not in ended]

    def dropped(self, line: Line) -> None:
        """Takes a line about records that CUPTI lost."""
        self.lost += integer(line, "lost")

    def failed(self, line: Line) -> None:
        """Takes a line about failures of the capture."""
        self.failures = f"{integer(line, 'capture_failed')} times, {on_one_line(text(line, 'why'))}"

    def end(self, line: Line) -> None:
        """Takes the last line: how many kernels still ran when the program ended."""
        self.is_whole, self.unfinished = True, integer(line, "unfinished")

    def numbered(self, stream: FileStream) -> int:
        """Returns the number of a stream among those of its GPU."""
        return self.joined.streams.of(self.gpu_of(stream), stream)

    def predicted(self, stream: FileStream) -> set[int]:
        """Returns the number of a stream in the records, in a set; empty: it is not in them."""
        return self.joined.streams.given(self.joined.device, stream)

    def gpu_of(self, stream: FileStream) -> int:
        """Returns the GPU of a stream."""
        return self.device_of.get(stream.context or 0, 0)

    def recording(self, selection: Selection) -> Recording:
        """Returns what the capture holds of the selected part."""
        unended = self.unended()
        first_ns = min((item.start_ns for item in self.work), default=0)
        self._launch_bodies()
        self.joined.expect_nodes(
            {executable for executable, _ in self.graphs.values()}, self.originals
        )
        for work in self.work:
            self.joined.add_node(work.graph, work.node)
            number = work.stream.number
            name = None if work.kernel is None else self.kernels[work.kernel][0]
            if selection.takes(number, name) and selection.takes_time(work.start_ns, first_ns):
                self._join(work)
        self.work.clear()
        if not self.joined.is_too_long:
            for call, context in self.contexts.items():
                self.joined.gpus[call] = self.device_of.get(context, 0)
        for number in self.loading:
            self.joined.activity.loaded(number)
        self._forget_waits_of_graphs()
        name, sms = self.devices.get(self.joined.device or 0, (None, None))
        records, activity = self.joined.records()
        records = self._with_graphs(records)
        kinds = {number: row for s, row in self.streams.items() for number in self.predicted(s)}
        legacy = {number for number, (kind, _) in kinds.items() if kind == "null"}
        legacy.update(*map(self.predicted, self.null_streams))
        return Recording(
            records=records, format=NAME, device=name, sms=sms, connections=self.connections,
            legacy_streams=frozenset(legacy),
            non_blocking={
                number: kind == "non_blocking"
                for number, (kind, _) in kinds.items()
                if kind in ("non_blocking", "default")
            },
            priorities={number: priority for number, (_, priority) in kinds.items()},
            sources=_SOURCES, missing=[*self._missing(unended), *self.joined.left_out],
            first_uses=True, kernels=self.joined.kernels, unended=tuple(unended), activity=activity,
            first_ns=first_ns if selection else None,
        )  # fmt: skip

    def _launch_bodies(self) -> None:
        """Gives the work of bodies of conditional nodes to launches of graphs.

        CUPTI says of which executable graph it is, and not by which launch. A graph does not run
        beside itself, so it is the last one that had begun.
        """
        first_ns: dict[int, int] = {}  # by launch: the start of its first node, or its call
        for work in self.work:
            if work.call in self.graphs:
                first_ns[work.call] = min(work.start_ns, first_ns.get(work.call, work.start_ns))
        begun: dict[int, list[tuple[int, int]]] = {}  # by executable
        for correlation, (executable, _) in self.graphs.items():
            call = self.joined.calls.get(correlation)
            at = first_ns.get(correlation, call.call_ns if call is not None else None)
            if at is not None:
                begun.setdefault(executable, []).append((at, correlation))
        for launches in begun.values():
            launches.sort()
        for index, work in enumerate(self.work):
            before = begun.get(work.graph or 0, [])
            position = bisect.bisect_right(before, (work.start_ns, MAX_INTEGER))
            if work.call == 0 and position > 0:
                correlation = before[position - 1][1]
                self.work[index] = work._replace(call=correlation)
                self.with_bodies.add(correlation)

    def _join(self, work: _Work) -> None:
        """Adds work that has ended to the activity and to the records."""
        context, device = work.stream.context, self.gpu_of(work.stream)
        stream = self.numbered(work.stream)
        if work.kernel is None:
            assert work.moved is not None
            kind, size, pinned = work.moved
            kind_of_work, name = MEMSET if kind == "memset" else COPY, copy_name(kind, pinned)
        else:
            kind_of_work, name, size = KERNEL, self.kernels[work.kernel][0], 0
        row = self.joined.activity.add_work(
            device, kind_of_work, name, stream, work.start_ns, work.end_ns, work.call, size=size,
            node=work.node or 0,
        )  # fmt: skip
        run = (
            stream, work.start_ns, work.end_ns, context, device, work.graph, work.node,
            work.channel, row,
        )  # fmt: skip
        if work.kernel is None:
            assert work.moved is not None
            values = (*work.moved, *run)
            self.joined.add_work(work.call, Transfer, _OF_TRANSFER + _RUN_FIELDS, values)
            return
        programmatic, priority = self.attributes.get(work.call, (False, None))
        green = context if context in self.green else None
        of_launch = work.configured, priority, programmatic, work.call in self.loading, green
        values = (*self.kernels[work.kernel], *run, *of_launch)
        self.joined.add_work(work.call, Kernel, _SHAPE + _RUN_FIELDS + _OF_LAUNCH, values)

    def _forget_waits_of_graphs(self) -> None:
        """Drops waits called while a graph was captured: they made edges of the graph."""
        if not self.graph_captures:
            return
        calls = self.joined.calls
        for correlation in self.joined.waited:
            call = calls.get(correlation)
            if call is None or call.what != "wait":
                continue
            if any(begin <= call.call_ns <= end for begin, end in self.graph_captures):
                del calls[correlation]

    def _with_graphs(self, records: list[Record]) -> list[Record]:
        """Returns the records, with nodes and edges added to launches of graphs."""
        nodes: dict[int, list[int]] = {}
        for record in records:
            if isinstance(record, Kernel | Transfer) and record.graph is not None:
                nodes.setdefault(record.graph, []).append(record.node or 0)
        edges: dict[int, tuple[tuple[int, int], ...]] = {}
        for index, record in enumerate(records):
            if not isinstance(record, GraphCall) or record.number not in self.graphs:
                continue
            executable, stream = self.graphs[record.number]
            if executable not in edges:
                edges[executable] = edges_through(
                    nodes.get(record.number, []), self.edges, self.originals
                )
            records[index] = replace(
                record,
                stream=self.numbered(stream),
                executable=executable,
                # A node of a body runs several times: the times tell what waited for what.
                edges=None if record.number in self.with_bodies else edges[executable],
                has_bodies=record.number in self.with_bodies,
            )
        return records

    def _missing(self, unended: list[str]) -> Iterator[str]:
        """Yields sentences about what the capture does not hold."""
        if unended:
            yield (
                f"The end of {len(unended)} operations that were issued, the first a {unended[0]}: "
                "assumed that they were not issued; `tbsched hang` says why they do not end."
            )
        if not self.is_whole:
            yield "The end: the program was killed, or still runs; assumed that it ends here."
        if self.lost:
            yield f"{self.lost} records that CUPTI lost: assumed that nothing happened there."
        if self.failures:
            yield f"What the capture failed to note, {self.failures}: assumed that it did nothing."
        if self.unfinished:
            yield (
                f"{self.unfinished} kernels that still ran when the program ended: assumed that "
                "they were not launched."
            )
        if self.with_bodies:
            yield (
                f"Which launch of a graph ran the bodies of conditional nodes, of "
                f"{len(self.with_bodies)} launches: assumed the last one of that graph."
            )
        disturbance = sentence_about(self.joined.calls.values(), self.own_work)
        if disturbance is not None:
            yield disturbance


_TAKES: dict[str, Callable[[_Captured, Line], None]] = {
    "tbsched_capture": _Captured.header,
    "device": _Captured.device,
    "context": _Captured.context,
    "stream": _Captured.stream,
    "function": _Captured.function,
    "kernel": _Captured.kernel,
    "call": _Captured.call,
    "ran": _Captured.ran,
    "copy": _Captured.copy,
    "memset": _Captured.memset,
    "event": _Captured.event,
    "timed": _Captured.records_time,
    "wait": _Captured.wait,
    "loading": _Captured.loads,
    "overhead": _Captured.overhead,
    "attributes": _Captured.given,
    "graph_launch": _Captured.graph_launch,
    "edge": _Captured.edge,
    "node": _Captured.node,
    "issued": _Captured.begun,
    "ended": _Captured.over,
    "lost": _Captured.dropped,
    "capture_failed": _Captured.failed,
    "end": _Captured.end,
}
_SOURCES = {
    "name": "name of kernel lines",
    "blocks": "grid of kernel lines",
    "threads": "block of kernel lines",
    "registers": "registers of kernel lines",
    "shared_memory": "static_shared_memory and dynamic_shared_memory of kernel lines",
    "local_memory": "local_memory of kernel lines",
    "cluster": "cluster of kernel lines",
    "carveout": "carveout of kernel lines",
    "cooperative": "cooperative of kernel lines",
    "stream": "stream of ran lines",
    "priority": "priority of stream and attributes lines",
    "programmatic": "programmatic of attributes lines",
    "first_use": "loading lines",
    "duration": "at of ran lines",
    "host": "at and thread of call lines",
    "copies": "copy and memset lines",
    "events": "event and wait lines",
    "graphs": "graph_launch, edge and node lines",
    "device": "device lines",
    "connections": "connections of the first line",
}


def _ran(line: Line) -> tuple[int, FileStream, int, int, int | None, int | None, int | None]:
    """Returns the first fields of :class:`_Work`."""
    call, context, stream = _CALL_AND_STREAM(line)
    start, end = times(line)
    channel, node, graph = (optional(line, field) for field in ("channel", "node", "graph"))
    return call, FileStream(context, stream), start, end, channel, node, graph


def _stream(line: Line) -> FileStream:
    """Returns the stream that a line names, with its context."""
    return FileStream(integer(line, "context"), integer(line, "stream"))


_CALL = Integers(("call", "of", "thread"))
_CALL_AND_STREAM = Integers(("call", "context", "stream"))


def _node(value: object) -> int:
    """Returns the number of a node, checked."""
    return integer({"node": value}, "node")


def _check_known(field: str, number: int, known: list[Any]) -> None:
    """Checks that a number refers to an earlier line."""
    if number >= len(known):
        raise ValueError(f"{field}: {number} has no line of its own before")


def _check_next(line: Line, field: str, known: list[Any]) -> None:
    """Checks that a line has the next number of its kind."""
    if integer(line, field) != len(known):
        raise ValueError(f"{field}: {len(known)} comes next, got {shown(line[field])}")
