"""What a capture says of a program that has not ended."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tbsched import storage
from tbsched.errors import printable, shown
from tbsched.hangs.graphs import CapturedGraph, Node, graph_of
from tbsched.importers.capture import takes
from tbsched.importers.reading.capture_lines import (
    MAX_INTEGER,
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
from tbsched.importers.reading.packed import head_of

Extent = tuple[int, int, int]
Shape = tuple[object, str, str]
Key = tuple[int, int]  # of an operation: its call, and its node or -1
GRAPH, LAUNCH = "graph", "launch"
_OF_NODES = {LAUNCH: "kernel", GRAPH: "work"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation that was issued and is not known to have ended; sizes in bytes.

    Attributes:
        call: the number of the call that issued it.
        what: ``launch``, ``copy``, ``memset``, ``graph``, ``record``, ``wait``, ``wait_value``,
            ``write_value`` or ``host_function``.
        function: the function of the driver.
        thread, system_thread: the host thread, and the number that the operating system gives it.
        issued: seconds since the capture began.
        gpu, context, stream: where; streams are numbered as in the file.
        bytes: of a copy or memset.
        address: where it writes, or of the value for which it waits; None: the file does not say.
        to_host: whether that is memory that the host can read; None: the file does not say.
        event: a number that is the same for the same event.
        has_timing: of a record: whether the event was made with timing, as far as the file says.
        has_returned: whether the call has returned.
        is_first: whether no kernel of that name was launched before.
        ended_before: whether a kernel of that name has ended before.
        grid_ended_before: whether one of that name, with as many blocks and threads, has.
        block_ended_before: whether one of that name, with as many threads per block, has.
        launches_before: how many kernels of that name were launched before; None: unknown.
        code: the number of its code in the file.
        arguments: of a launch, words of 8 bytes by their place, in bytes.
        small_arguments: likewise, of 4 bytes; also the halves of those of 8.
        host_arguments, managed_arguments: places of a launch's arguments, in bytes, that are
            addresses of the host's memory, and of managed memory.
        name, grid, block, registers, shared_memory, local_memory, cluster, carveout, cooperative,
            programmatic, priority: of a launch; None where the file does not say it.
        node: of a node of a graph its number there, else None.
        graph: that graph.
        is_changed: whether nodes of that graph have other parameters than are known.
        triggers: whether its code lets the next launch of its stream start before it waits.
    """

    call: int
    what: str
    function: str
    thread: int
    system_thread: int | None
    issued: float
    gpu: int
    context: int
    stream: int
    bytes: int = 0
    address: int | None = None
    to_host: bool | None = None
    event: int | None = None
    has_timing: bool = False
    has_returned: bool = True
    is_first: bool = False
    ended_before: bool = False
    grid_ended_before: bool = False
    block_ended_before: bool = False
    launches_before: int | None = None
    code: int | None = None
    arguments: Mapping[int, int] | None = None
    small_arguments: Mapping[int, int] = field(default_factory=dict)
    host_arguments: frozenset[int] | None = None
    managed_arguments: frozenset[int] | None = None
    name: str | None = None
    grid: Extent = (1, 1, 1)
    block: Extent = (1, 1, 1)
    registers: int | None = None
    shared_memory: int | None = None
    local_memory: int | None = None
    cluster: Extent | None = None
    carveout: int | None = None
    cooperative: bool = False
    programmatic: bool = False
    priority: int | None = None
    node: int | None = None
    graph: CapturedGraph | None = field(default=None, repr=False)
    is_changed: bool = False
    triggers: bool = False

    @property
    def blocks(self) -> int:
        """Number of blocks of a launch's grid."""
        return math.prod(self.grid)

    @property
    def key(self) -> Key:
        """Call and node: nodes of a graph share the call that launched it."""
        return self.call, -1 if self.node is None else self.node

    def is_behind(self, other: Operation) -> bool:
        """Returns whether it waits for another operation because of their stream or graph."""
        if self.stream_key != other.stream_key:
            return False
        if self.call != other.call or self.node is None or other.node is None:
            return other.call < self.call
        return self.graph is not None and self.graph.waits_for(self.node, other.node)

    @property
    def stream_key(self) -> tuple[int, int]:
        """Context and number of its stream: each context numbers its own."""
        return self.context, self.stream


def name_of(operation: Operation) -> str:
    """Returns an operation's name for sentences: its kernel, or such as ``the copy of call 7``."""
    if operation.name is not None:
        return operation.name
    what = operation.what.replace("_", " ")
    if operation.node is None:
        return f"the {what} of call {operation.call}"
    what = _OF_NODES.get(operation.what, what)
    return f"the {what} of node {operation.node} of the graph of call {operation.call}"


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that has not returned; fields as of :class:`Operation`."""

    call: int
    function: str
    thread: int
    system_thread: int | None
    began: float


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a kernel, and where its arguments begin in constant bank 0."""

    code: bytes
    parameters_at: int


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What a stream is: ``kind`` is ``null``, ``default``, ``non_blocking`` or ``unknown``.

    ``green_sms``: the number of SMs of its green context; None: it has none.
    """

    kind: str
    priority: int
    green_sms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMemory:
    """Memory of the GPU that a capture read several times while nothing else was new.

    Attributes:
        begin, bytes: where, and how much.
        reads: how often.
        first, last: when, in seconds since the capture began.
        counted: the number of words of 4 bytes with three values or more that only grew, or only
            shrank.
        renewed: likewise, of those that had another value after each change.
        returned: likewise, of those that had an earlier value again.
        once: likewise, of those that changed once.
        counted_at, renewed_at: addresses of the first of such words.
    """

    begin: int
    bytes: int
    reads: int
    first: float
    last: float
    counted: int = 0
    renewed: int = 0
    returned: int = 0
    once: int = 0
    counted_at: tuple[int, ...] = ()
    renewed_at: tuple[int, ...] = ()

    @property
    def changed(self) -> int:
        """Number of words that changed."""
        return self.counted + self.renewed + self.returned + self.once


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """What a capture says of a program and its operations that have not ended.

    Attributes:
        path: the file.
        process: the number of the process.
        connections: CUDA_DEVICE_MAX_CONNECTIONS.
        notes_issued: whether the file says what was issued; older captures do not.
        is_whole: whether the program ended by itself.
        gpus: of each GPU its name, its number of SMs and its compute capability.
        operations: in the order of issue.
        open_calls: calls that have not returned.
        streams: by context and number.
        started: when the capture began, in seconds since 1970.
        last_end: when something last ended, or was issued; seconds since the capture began.
        last_seen: when the process last ran, as far as the file says.
        ended: how often each kernel has ended, by its name.
        local_memory: the largest of kernels that have ended, in bytes per thread.
        codes: of kernels that were issued and have not ended, by their number.
        notes_flushes: whether the file says that CUPTI gave no answer; older captures do not.
        loaded: how many kernels have been loaded, each by itself.
        launched: how many names of kernels were launched.
        failed: how often the capture itself failed, and so did not note something.
        why: the reason of the first time.
        memory_changed: addresses that launches have of the host's memory, and when something there
            was last seen to change, in seconds since the capture began.
        reads_gpu_memory: whether the capture reads memory of the GPU while nothing is new.
        gpu_memory: memory of the GPU to which launches have addresses, as it was read last.
        host_goes_on: threads that called nothing of CUDA and ran all the time, or slept for a time
            that ends by the clock, and when that was last seen.
        waits_for_driver: for how many seconds, at the end of the file, CUPTI gave no answer: the
            driver is busy loading code or freeing memory, and that waits for the GPU.
    """

    path: Path
    process: int | None
    connections: int | None
    notes_issued: bool
    is_whole: bool
    gpus: dict[int, tuple[str, int, str]]
    operations: tuple[Operation, ...]
    open_calls: tuple[OpenCall, ...]
    streams: dict[tuple[int, int], StreamFacts]
    started: float
    last_end: float
    last_seen: float
    ended: Mapping[str, int]
    local_memory: int
    codes: Mapping[int, Code]
    notes_flushes: bool
    loaded: int
    launched: int
    waits_for_driver: float
    failed: int = 0
    why: str = ""
    memory_changed: Mapping[int, float] = field(default_factory=dict)
    host_goes_on: Mapping[int, float] = field(default_factory=dict)
    gpu_memory: tuple[ReadMemory, ...] = ()
    reads_gpu_memory: bool = False

    @property
    def quiet(self) -> float:
        """Seconds at the end of the file in which nothing ended and nothing was issued."""
        return max(self.last_seen - self.last_end, 0.0)

    def is_late(self, seconds: float) -> bool:
        """Returns whether a time, in seconds, is in the later half of the quiet time. That is in
        the later half of the time in which nothing else was."""
        return self.last_seen - seconds < self.quiet / 2


def read_unfinished(path: Path) -> Unfinished:
    """Returns what has not ended in a capture.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a capture, or a line that cannot be.
    """
    if not takes(head_of(path)):
        raise ValueError(
            f"{storage.shown(path)}: not a capture, and not a core dump of a GPU; `tbsched capture "
            "-o run.jsonl -- PROGRAM` makes a capture"
        )
    reader = _Reader()
    take_lines(path, reader.add)
    try:
        return reader.found(path)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{storage.shown(path)}: {error}") from None


@dataclass(slots=True)
class _Reader:
    """Collects the lines of a capture."""

    process: int | None = None
    connections: int | None = None
    started_ns: int = 0
    notes_issued: bool = False
    notes_flushes: bool = False
    is_whole: bool = False
    gpus: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    gpu_of: dict[int, int] = field(default_factory=dict)
    null_streams: set[tuple[int, int]] = field(default_factory=set)
    streams: dict[tuple[int, int], StreamFacts] = field(default_factory=dict)
    kernels: list[str] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    shapes_ran: set[Shape] = field(default_factory=set)
    local_memory: list[int] = field(default_factory=list)
    ran: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    issued: dict[int, Line] = field(default_factory=dict)
    first_uses: set[Key] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    loaded: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    open_calls: dict[int, OpenCall] = field(default_factory=dict)
    codes: dict[int, Code] = field(default_factory=dict)
    nodes: dict[int, dict[int, Line]] = field(default_factory=dict)  # by graph
    graphs: dict[int, CapturedGraph] = field(default_factory=dict)
    flushing_ns: int | None = None
    memory_changed: dict[int, float] = field(default_factory=dict)
    host_goes_on: dict[int, float] = field(default_factory=dict)
    gpu_memory: list[ReadMemory] = field(default_factory=list)
    reads_gpu_memory: bool = False
    failed: int = 0
    why: str = ""
    last_end_ns: int = 0
    last_seen_ns: int = 0

    def add(self, line: object) -> None:
        """Takes one line of a capture; one of an unknown kind is ignored."""
        if not isinstance(line, dict) or not line:
            raise ValueError(f"an object is needed, got {shown(line)}")
        match next(iter(line)):
            case "tbsched_capture":
                self.process = optional(line, "process")
                self.connections = optional(line, "connections", 1)
                self.started_ns = optional(line, "started_ns") or 0
                self.notes_issued = bool(flag(line, "notes_issued"))
                self.notes_flushes = bool(flag(line, "notes_flushes"))
                self.reads_gpu_memory = bool(flag(line, "reads_gpu_memory"))
            case "device":
                facts = text(line, "name"), sms_of(line), text(line, "compute_capability")
                self.gpus[integer(line, "device")] = facts
            case "context":
                self.gpu_of[integer(line, "context")] = integer(line, "device")
                self.null_streams.add((integer(line, "context"), integer(line, "null_stream")))
            case "stream":
                key = integer(line, "context"), integer(line, "stream")
                known = self.streams.get(key)  # CUPTI's own line of it has no SMs
                self.streams[key] = StreamFacts(
                    text(line, "kind"), integer(line, "priority", -MAX_INTEGER),
                    optional(line, "green_sms") or (known.green_sms if known else None),
                )  # fmt: skip
            case "kernel":
                self.kernels.append(text(line, "name"))
                self.local_memory.append(optional(line, "local_memory") or 0)
                self.shapes.append(_shape(line))
            case "ran":
                number = integer(line, "ran")
                if number < len(self.kernels):
                    self.ran.add(number)
                    self.names.add(self.kernels[number])
                    self.shapes_ran.add(self.shapes[number])
                    self.counts[self.kernels[number]] += 1
                self.has_ended(line)
            case "loading":
                self.loaded += line["loading"] == "function"
            case "copy" | "memset":
                self.has_ended(line)
            case "call":
                call, (_, end) = integer(line, "call"), times(line)
                self.open_calls.pop(call, None)
                self.happened(end)
            case "issued":
                self.add_issued(line)
            case "ended":
                self.ended.add(integer(line, "ended"))
            case "inside":
                self.add_open(line)
            case "returned":
                self.open_calls.pop(integer(line, "returned"), None)
                self.happened(integer(line, "at"))
            case "alive":
                self.last_seen_ns = max(self.last_seen_ns, integer(line, "alive"))
                self.flushing_ns = optional(line, "flushing")
                at = integer(line, "alive") / 1e9
                self.memory_changed |= dict.fromkeys(_numbers(line, "changed") or (), at)
                for word in ("busy", "asleep"):
                    self.host_goes_on |= dict.fromkeys(_numbers(line, word) or (), at)
            case "gpu_memory":
                self.add_memory(_read_memory(line))
            case "code":
                self.codes[integer(line, "code")] = Code(
                    bytes.fromhex(text(line, "hex")), integer(line, "parameters_at")
                )
            case "graph_node":
                graph_nodes = self.nodes.setdefault(integer(line, "of"), {})
                graph_nodes[integer(line, "graph_node")] = line
            case "graph":
                number = integer(line, "graph")
                self.graphs[number] = graph_of(line, self.nodes.pop(number, {}))
            case "capture_failed":
                self.failed, self.why = integer(line, "capture_failed"), text(line, "why")
            case "end":
                self.is_whole = True

    def add_memory(self, read: ReadMemory) -> None:
        """Adds memory that was read, and forgets what was read before."""
        self.gpu_memory = [each for each in self.gpu_memory if each.last == read.last]
        self.gpu_memory.append(read)

    def happened(self, at_ns: int) -> None:
        """Notes a time, in ns, at which something happened in the process."""
        self.last_end_ns = max(self.last_end_ns, at_ns)
        self.last_seen_ns = max(self.last_seen_ns, at_ns)

    def has_ended(self, line: Line) -> None:
        """Notes that the operation of a line has ended."""
        self.happened(times(line)[1])
        if "node" not in line:
            self.ended.add(integer(line, "call"))

    def add_issued(self, line: Line) -> None:
        """Adds an operation that was issued."""
        call = integer(line, "issued")
        self.issued[call] = line
        self.happened(integer(line, "at"))
        if text(line, "what") == LAUNCH and "name" in line:
            self.add_use(line, (call, -1))
        for number, node in self.nodes_of(line):
            if node.what == LAUNCH and "name" in node.line:
                self.add_use(node.line, (call, number))

    def add_use(self, line: Line, key: Key) -> None:
        """Notes the first launch of each kernel name."""
        name = text(line, "name")
        if name not in self.names:
            self.first_uses.add(key)
        self.names.add(name)

    def nodes_of(self, line: Line) -> Iterator[tuple[int, Node]]:
        """Yields number and node of each node that does work in the graph that a line launches."""
        graph = self.graphs.get(integer(line, "graph")) if "graph" in line else None
        for number, node in enumerate(graph.nodes if graph is not None else ()):
            if node.what is not None:
                yield number, node

    def add_open(self, line: Line) -> None:
        """Adds a call that has not returned."""
        call = integer(line, "inside")
        self.open_calls[call] = OpenCall(
            call, text(line, "function"), integer(line, "thread"), optional(line, "system_thread"),
            integer(line, "at") / 1e9,
        )  # fmt: skip
        self.happened(integer(line, "at"))

    def found(self, path: Path) -> Unfinished:
        """Returns what has not ended, after the last line."""
        unended = [call for call in self.issued if call not in self.ended]
        operations = [op for call in unended for op in self.operations(self.issued[call])]
        streams = {key: StreamFacts("null", 0) for key in self.null_streams} | self.streams
        flushing_ns = self.last_seen_ns if self.flushing_ns is None else self.flushing_ns
        return Unfinished(
            path=path, process=self.process, connections=self.connections,
            notes_issued=self.notes_issued, is_whole=self.is_whole, gpus=self.gpus,
            operations=tuple(sorted(operations, key=lambda each: (each.issued, each.call))),
            open_calls=tuple(self.open_calls.values()), streams=streams,
            started=self.started_ns / 1e9, last_end=self.last_end_ns / 1e9,
            last_seen=self.last_seen_ns / 1e9, ended=self.counts,
            local_memory=max((self.local_memory[number] for number in self.ran), default=0),
            codes=self.codes, notes_flushes=self.notes_flushes, loaded=self.loaded,
            launched=len(self.names),
            waits_for_driver=max(self.last_seen_ns - flushing_ns, 0) / 1e9, failed=self.failed,
            why=self.why, memory_changed=self.memory_changed, host_goes_on=self.host_goes_on,
            gpu_memory=tuple(self.gpu_memory), reads_gpu_memory=self.reads_gpu_memory,
        )  # fmt: skip

    def operations(self, line: Line) -> Iterator[Operation]:
        """Yields the operation that a line issued, or those of the nodes of its graph."""
        whole = self.operation(line, line)
        nodes = [*self.nodes_of(line)]
        if not nodes:
            yield whole
            return
        call, graph = integer(line, "issued"), self.graphs[integer(line, "graph")]
        names = dict.fromkeys(text(own.line, "name") for _, own in nodes if "name" in own.line)
        counts = dict(zip(names, _numbers(line, "before") or [], strict=False))
        for number, node in nodes:
            name = text(node.line, "name") if "name" in node.line else ""
            yield replace(
                self.operation(line, node.line | {"what": node.what}), node=number, graph=graph,
                is_changed=line.get("changed") is True, is_first=(call, number) in self.first_uses,
                launches_before=counts.get(name),
            )  # fmt: skip
            if name in counts:
                counts[name] += 1

    def operation(self, issued: Line, line: Line) -> Operation:
        """Returns the operation of a call, or of a node that the call launched, by their lines."""
        context = integer(issued, "context")
        call = integer(issued, "issued")
        shared = [optional(line, key) for key in ("static_shared_memory", "dynamic_shared_memory")]
        is_launch = line.get("what") == LAUNCH
        return Operation(
            call=call, what=text(line, "what"), function=text(issued, "function"),
            thread=integer(issued, "thread"), system_thread=optional(issued, "system_thread"),
            issued=integer(issued, "at") / 1e9, gpu=self.gpu_of.get(context, 0), context=context,
            stream=integer(issued, "stream"), bytes=optional(line, "bytes") or 0,
            address=optional(line, "address"),
            to_host=text(line, "to") != "other" if "to" in line else None,
            event=optional(line, "event"), has_timing=bool(flag(line, "timing")),
            has_returned=call not in self.open_calls,
            is_first=(call, -1) in self.first_uses, ended_before=line.get("name") in self.counts,
            grid_ended_before=_shape(line) in self.shapes_ran,
            block_ended_before=any(
                (name, block) == _shape(line)[::2] for name, _, block in self.shapes_ran
            ),
            launches_before=optional(line, "before") if is_launch else None,
            code=optional(line, "code"), arguments=_words(line, "arguments"),
            small_arguments=_small_words(line),
            host_arguments=_places(line, "host_arguments"),
            managed_arguments=_places(line, "managed_arguments"),
            name=printable(text(line, "name")) if "name" in line else None,
            grid=three(line, "grid") if is_launch else (1, 1, 1),
            block=three(line, "block") if is_launch else (1, 1, 1),
            registers=optional(line, "registers"),
            shared_memory=sum(size or 0 for size in shared) if shared[0] is not None else shared[1],
            local_memory=optional(line, "local_memory"),
            cluster=three(line, "cluster") if "cluster" in line else None,
            carveout=optional(line, "carveout"), cooperative=bool(flag(line, "cooperative")),
            programmatic=bool(flag(line, "programmatic")),
            priority=optional(line, "priority", -MAX_INTEGER),
        )  # fmt: skip


def _read_memory(line: Line) -> ReadMemory:
    """Returns the memory that a line says to have been read several times."""
    first, last = times(line)
    return ReadMemory(
        begin=integer(line, "gpu_memory"), bytes=integer(line, "bytes"),
        reads=integer(line, "reads"), first=first / 1e9, last=last / 1e9,
        counted=optional(line, "counted") or 0, renewed=optional(line, "renewed") or 0,
        returned=optional(line, "returned") or 0, once=optional(line, "once") or 0,
        counted_at=tuple(_numbers(line, "counted_at") or ()),
        renewed_at=tuple(_numbers(line, "renewed_at") or ()),
    )  # fmt: skip


def _shape(line: Line) -> Shape:
    """Returns name, grid and block of a line's launch, to compare launches."""
    return line.get("name"), str(line.get("grid")), str(line.get("block"))


def _numbers(line: Line, key: str) -> list[int] | None:
    """Returns a line's list of integers; None: the line has none."""
    if key not in line:
        return None
    numbers = line[key]
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise ValueError(f"{key}: a list of integers is needed, got {shown(numbers)}")
    return numbers


def _places(line: Line, key: str) -> frozenset[int] | None:
    """Returns a line's list of integers as a set; None: the line has none."""
    numbers = _numbers(line, key)
    return None if numbers is None else frozenset(numbers)


def _words(line: Line, key: str) -> dict[int, int] | None:
    """Returns a line's arguments: 8-byte words by byte offset; None: the line has none."""
    numbers = _numbers(line, key)
    return None if numbers is None else dict(zip(numbers[::2], numbers[1::2], strict=False))


def _small_words(line: Line) -> dict[int, int]:
    """Returns a line's arguments as signed words of 4 bytes, by byte offset."""
    numbers = _numbers(line, "small_arguments") or []
    words = {
        place: value
        for place, value, size in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=False)
        if size == 4
    }
    for place, value in (_words(line, "arguments") or {}).items():
        words |= {place: value & 0xFFFFFFFF, place + 4: value >> 32 & 0xFFFFFFFF}
    return {place: value - (value >> 31 << 32) for place, value in words.items()}
