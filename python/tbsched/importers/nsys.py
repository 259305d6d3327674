"""Exports of Nsight Systems to SQLite, whose columns differ between versions."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from tbsched import storage
from tbsched.importers.reading.joined import Joined, Waited
from tbsched.importers.reading.nsys_host import add_host
from tbsched.importers.reading.nsys_tables import (
    CALLS,
    COPIES,
    GPUS,
    GRAPHS,
    KERNELS,
    LAUNCH_TYPES,
    MEMORY_KINDS,
    MEMSETS,
    RECORDED,
    STREAMS,
    WAITS,
    Row,
    Tables,
    maybe,
    process_of,
    time_of,
    whole,
)
from tbsched.importers.reading.nsys_target import MAX_DEVICES, Gpus, Streams
from tbsched.importers.reading.selection import Selection
from tbsched.importers.reading.stream_numbers import FileStream
from tbsched.importers.records import Kernel, Recording, Transfer
from tbsched.program.activity import (
    COPY,
    GRAPH,
    KERNEL,
    MEMSET,
    MIGRATION,
    ActivityBuilder,
    copy_name,
)
from tbsched.progress import bar

NAME = "Nsight Systems export (SQLite)"
_MAGIC = b"SQLite format 3\0"
_RAN = (
    "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphId",
    "graphNodeId",
)  # fmt: skip
_KERNEL_COLUMNS = (
    *_RAN, "name", "demangledName", "shortName", "mangledName", "gridX", "gridY", "gridZ", "blockX",
    "blockY", "blockZ", "clusterX", "clusterY", "clusterZ", "registersPerThread",
    "staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread",
    "sharedMemoryRequestedPercentage", "sharedMemoryExecuted", "launchType", "greenContextId",
)  # fmt: skip
_CORRELATION = _RAN.index("correlationId")
_SPECIFIC = len(_RAN)  # index of the first column that only some kinds of work have
_SHAPED = _SPECIFIC + 4  # index of the first column of a kernel's shape
_COPY_COLUMNS = (*_RAN, "bytes", "copyKind", "srcKind", "dstKind", "migrationCause")
_MEMSET_COLUMNS = (*_RAN, "bytes")
_GRAPH_COLUMNS = (*_RAN[:-2], "graphExecId", "graphId")
_RAN_FIELDS = (
    "start_ns", "end_ns", "device", "context", "stream", "executable", "node", "row",
)  # fmt: skip
_KERNEL_FIELDS = (
    *_RAN_FIELDS, "name", "grid", "block", "cluster", "registers", "static_shared_memory",
    "dynamic_shared_memory", "local_memory", "carveout", "shared_memory_executed", "cooperative",
    "green_context",
)  # fmt: skip
_MOVE_FIELDS = (*_RAN_FIELDS, "bytes", "kind", "pinned")
_WORK = (KERNELS, GRAPHS, COPIES, MEMSETS)
# CUPTI's numbers.
_COPY_KINDS = {
    1: "h2d", 2: "d2h", 3: "h2d", 4: "d2h", 5: "d2d", 6: "d2d", 7: "d2d", 8: "d2d", 10: "d2d",
    11: "h2d", 12: "d2h", 13: "d2d",
}  # fmt: skip
_PEER, _UNIFIED = 10, (11, 12, 13)
_PREFETCH = "prefetch by the program"
_CAUSES = {
    1: _PREFETCH, 2: "page fault", 3: "speculative prefetch",
    4: "eviction", 5: "access counters",
}  # fmt: skip
_NONE = 2**32 - 1  # in the place of a stream or an event
_PROCESS_BITS = 38  # shift of a process's index, above CUPTI's numbers of 32 bits
_UNKNOWN_WAITS = (
    "The file does not say for which work streams wait in {count} calls; Nsight Systems writes it "
    "with --cuda-event-trace=true."
)
_WHOLE_GRAPHS = (
    "The kernels of {count} launches of graphs: left out; the account has each graph as a whole. "
    "Nsight Systems writes them with --cuda-graph-trace=node."
)
_OTHER_PROCESSES = (
    "{count} kernels ran in other processes: only process {process} is predicted, and the others "
    "are assumed not to disturb it. The account has all of them."
)
_MIGRATIONS = (
    "{count} migrations of unified memory: they are in the account as such; the model does not "
    "know them."
)
_UNASKED = (
    "{count} migrations of unified memory that the program did not ask for: "
    "cudaMemPrefetchAsync before the memory is needed would avoid them."
)
_BACKWARDS = "{count} kernels, copies or memsets end before they start: taken as of no length."
_NO_GPU = (
    "On which GPU {count} kernels, copies, memsets or graphs ran: the file does not say it; they "
    "count for GPU 0."
)
_DEFAULT_STREAM = "Which stream is the default one: assumed stream 7, CUPTI's number of it."
_SOURCES = {
    "name": f"{KERNELS}.demangledName",
    "blocks": f"{KERNELS}.gridX, gridY, gridZ",
    "threads": f"{KERNELS}.blockX, blockY, blockZ",
    "registers": f"{KERNELS}.registersPerThread",
    "shared_memory": f"{KERNELS}.staticSharedMemory, dynamicSharedMemory",
    "local_memory": f"{KERNELS}.localMemoryPerThread",
    "carveout": f"{KERNELS}.sharedMemoryRequestedPercentage",
    "cluster": f"{KERNELS}.clusterX, clusterY, clusterZ",
    "cooperative": f"{KERNELS}.launchType",
    "stream": f"{KERNELS}.streamId",
    "priority": f"{STREAMS}.priority",
    "non_blocking": f"{STREAMS}.flag",
    "duration": f"{KERNELS}.start, end",
    "host": f"{CALLS}.start, end, globalTid",
    "copies": f"{COPIES}, {MEMSETS}",
    "events": f"{RECORDED}, {WAITS}",
    "graphs": f"{KERNELS}.graphNodeId, {CALLS}",
    "device": GPUS,
}


def takes(head: bytes) -> bool:
    """Returns whether a file with these first bytes is an SQLite database."""
    return head.startswith(_MAGIC)


def read(path: Path, selection: Selection) -> Recording:
    """Returns what an SQLite export of Nsight Systems recorded.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no database, one that is damaged, or a row that cannot be; names the file.
    """
    with storage.opened(path) as file:  # says what is there, if it is no file
        limits = _Limits(os.fstat(file.fileno()).st_size)
    try:
        with contextlib.closing(_opened(path, limits)) as database:
            return _recording(database, selection, path.name)
    except (sqlite3.Error, OverflowError) as error:
        # What SQLite says may quote what is in the file.
        why = " ".join(str(error).split())[:200] if limits.is_within else _Limits.BROKEN
        raise ValueError(
            f"{storage.shown(path)}: cannot be read as an SQLite database: {why}; was the export "
            "written and copied to its end, and is it unpacked?"
        ) from None
    except ValueError as error:
        raise ValueError(f"{storage.shown(path)}: {error}") from None


class _Limits:
    """What reading a database may take: a minimum, and beyond that a multiple of its size. In a
    damaged file many pages may lead to one page, so that its rows come again and again."""

    STEPS, STEPS_PER_BYTE = 2_000_000, 100  # of SQLite's machine, about 30 for a row
    TEXT, TEXT_PER_BYTE = 2**26, 16  # bytes
    BROKEN = "it has more rows than it has room for"
    _AT_ONCE = 10_000

    def __init__(self, size: int) -> None:
        self._steps = self.STEPS + self.STEPS_PER_BYTE * size
        self._text = self.TEXT + self.TEXT_PER_BYTE * size

    @property
    def is_within(self) -> bool:
        """Whether nothing was beyond them so far."""
        return self._steps >= 0 and self._text >= 0

    def watch(self, database: sqlite3.Connection) -> None:
        """Makes a database interrupt what exceeds the limits."""
        database.set_progress_handler(self._step, self._AT_ONCE)
        database.text_factory = self._decoded

    def _step(self) -> bool:
        """Counts steps of the database; returns whether it must stop."""
        self._steps -= self._AT_ONCE
        return not self.is_within

    def _decoded(self, text: bytes) -> str:
        """Returns a text of the database, and counts its length."""
        self._text -= len(text)
        if self._text < 0:
            raise ValueError(self.BROKEN)
        return text.decode("utf-8", "replace")


def _opened(path: Path, limits: _Limits) -> sqlite3.Connection:
    """Opens the database read-only, without writing files next to it."""
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    database.execute("PRAGMA trusted_schema = OFF")
    limits.watch(database)
    return database


# Work of the process that is predicted: the number of its call, and fields of its record.
_Ran: TypeAlias = tuple[int, tuple[int | None, ...]]


def _recording(database: sqlite3.Connection, selection: Selection, name: str) -> Recording:
    """Returns what an export recorded; early host calls are read only if calls are missing."""
    for reads_all in (False, True):
        export = _Export(database, selection, name, reads_all=reads_all)
        recording = export.recording()
        if not export.lacks_calls:
            break
    return recording


class _Export:
    """Reads the tables of an export."""

    def __init__(
        self, database: sqlite3.Connection, selection: Selection, name: str, *, reads_all: bool
    ) -> None:
        self._tables = Tables(database)
        self._name = name
        self._selection = selection
        self._missing: list[str] = []
        self.lacks_calls = False
        self._first_ns = self._found_first_ns() if selection else 0
        of_host = selection.of_host(self._first_ns)[-1 if reads_all else 0]
        self._joined = Joined(activity=ActivityBuilder(of_host))
        self._process = self._chosen_process()  # None: nobody knows whose work it is
        self._process_indices: dict[int, int] = {} if self._process is None else {self._process: 0}
        self._gpus = Gpus(self._tables)
        self._backwards = 0
        self._without_gpu = 0
        self._migrations: Counter[str] = Counter()  # by name

    def recording(self) -> Recording:
        """Returns what the export holds of the selected part."""
        joined = self._joined
        self._add_kernels()
        self._add_copies()
        self._add_memsets()
        graphs = self._add_graphs()
        self._add_calls()
        self._add_events()
        add_host(self._tables, joined.activity)
        streams = Streams.of(self._tables, self._process)
        device = joined.device
        records, activity = joined.records()
        self.lacks_calls = joined.lacks_calls(activity)
        self._missing += joined.left_out
        if device is None and len(activity.work):
            device = int(activity.work["gpu"][0])
        gpu = self._gpus.facts(self._process, device or 0)
        self._note(
            _WHOLE_GRAPHS, len(graphs - {getattr(record, "graph", None) for record in records})
        )
        self._note(_UNKNOWN_WAITS, joined.unknown_waits)
        self._note(_MIGRATIONS, self._migrations.total())
        self._note(
            _UNASKED,
            sum(self._migrations[name] for name in self._migrations if _PREFETCH not in name),
        )
        self._note(_NO_GPU, self._without_gpu)
        self._note(_BACKWARDS, self._backwards)
        if not streams.legacy:
            self._missing.append(_DEFAULT_STREAM)
        legacy = streams.legacy or {FileStream(None, 7)}

        def numbered(stream: FileStream) -> set[int]:
            return joined.streams.given(joined.device, stream)

        return Recording(
            records=records, format=NAME, device=gpu.name, sms=gpu.sms, gpu=gpu,
            sources=self._sources(), missing=self._missing,
            legacy_streams=frozenset().union(*map(numbered, legacy)),
            non_blocking={n: is_ for s, is_ in streams.non_blocking.items() for n in numbered(s)},
            priorities={n: given for s, given in streams.priorities.items() for n in numbered(s)},
            kernels=joined.kernels, activity=activity,
            first_ns=self._first_ns if self._selection else None,
        )  # fmt: skip

    def _note(self, sentence: str, count: int) -> None:
        """Notes a sentence about what is not known, if it concerns anything."""
        if count:
            self._missing.append(sentence.format(count=count))

    def _sources(self) -> dict[str, str]:
        """Returns the sources of the fields for which this version has a column."""
        has_carveout = self._tables.has(KERNELS, "sharedMemoryRequestedPercentage")
        return {k: v for k, v in _SOURCES.items() if k != "carveout" or has_carveout}

    def _chosen_process(self) -> int | None:
        """Returns the process with the most kernels, or else the most other work."""
        counts: Counter[int] = Counter()
        for table in _WORK:
            kernels_by_pid = Counter(chain.from_iterable(self._tables.rows(table, ("globalPid",))))
            for pid, count in kernels_by_pid.items():
                if (process := process_of(pid)) is not None:
                    counts[process] += count
            if counts:
                break
        if not counts:
            return None
        chosen, chosen_count = counts.most_common(1)[0]
        if table == KERNELS and (other_count := counts.total() - chosen_count):
            self._missing.append(_OTHER_PROCESSES.format(count=other_count, process=chosen))
        return chosen

    def _found_first_ns(self) -> int:
        """Returns the time in ns at which the first work on a GPU starts."""
        rows = (row for table in _WORK for row in self._tables.rows(table, ("start",)))
        return min((time_of("start", start) for (start,) in rows), default=0)

    def _add_kernels(self) -> None:
        """Adds the kernels that ran."""
        tables, joined = self._tables, self._joined
        cooperative = set().union(
            *(tables.numbers_of(value, "COOPERATIVE") for value in LAUNCH_TYPES)
        )
        with bar(f"reading {self._name}", tables.count(KERNELS)) as advance:
            for index, row in enumerate(tables.rows(KERNELS, _KERNEL_COLUMNS)):
                advance(index)
                names, shape = row[_SPECIFIC:_SHAPED], row[_SHAPED:]
                name = tables.text(next((value for value in names if value is not None), None))
                ran = self._ran(row, KERNEL, name, selected=name)
                if ran is None:
                    continue
                grid, block, cluster = shape[:3], shape[3:6], shape[6:9]
                registers, static, dynamic, local, percent, executed, kind, green = shape[9:]
                percent = maybe("sharedMemoryRequestedPercentage", percent)
                correlation, values = ran
                joined.add_work(correlation, Kernel, _KERNEL_FIELDS, (
                    *values, name, _three("grid", grid), _three("block", block),
                    _clustered(_three("cluster", cluster)),
                    maybe("registersPerThread", registers) or None,
                    maybe("staticSharedMemory", static), maybe("dynamicSharedMemory", dynamic),
                    maybe("localMemoryPerThread", local),
                    percent if percent and percent <= 100 else None,  # 0: nobody asked
                    maybe("sharedMemoryExecuted", executed),
                    kind in cooperative if cooperative and kind is not None else None,
                    maybe("greenContextId", green) or None,
                ))  # fmt: skip

    def _add_copies(self) -> None:
        """Adds the copies, and migrations of unified memory."""
        pinned = self._tables.numbers_of(MEMORY_KINDS, "PINNED")
        pageable = self._tables.numbers_of(MEMORY_KINDS, "PAGEABLE")
        for row in self._tables.rows(COPIES, _COPY_COLUMNS):
            size, copy_kind, source, target, cause = row[_SPECIFIC:]
            size, kind = whole("bytes", size), _COPY_KINDS.get(copy_kind, "unknown")
            if copy_kind in _UNIFIED or (cause is not None and not row[_CORRELATION]):
                because = _CAUSES.get(cause)
                name = kind if because is None else f"{kind} ({because})"
                self._ran(row, MIGRATION, name, size=size)
                continue
            ends = {source, target}
            memory = False if ends & pageable else True if ends & pinned else None
            name = copy_name("p2p" if copy_kind == _PEER else kind, memory)
            if ran := self._ran(row, COPY, name, size=size):
                correlation, values = ran
                moved = (*values, size, kind, memory)
                self._joined.add_work(correlation, Transfer, _MOVE_FIELDS, moved)

    def _add_memsets(self) -> None:
        """Adds the memsets."""
        for row in self._tables.rows(MEMSETS, _MEMSET_COLUMNS):
            size = whole("bytes", row[_SPECIFIC])
            if ran := self._ran(row, MEMSET, copy_name("memset", None), size=size):
                correlation, values = ran
                moved = (*values, size, "memset", None)
                self._joined.add_work(correlation, Transfer, _MOVE_FIELDS, moved)

    def _add_graphs(self) -> set[int]:
        """Adds graphs that were recorded as a whole; returns the numbers of their launch calls."""
        launching_calls: set[int] = set()
        for *row, executable, graph in self._tables.rows(GRAPHS, _GRAPH_COLUMNS):
            graph_id = graph if executable is None else executable
            name = "graph" if graph_id is None else f"graph {whole('graphId', graph_id)}"
            if ran := self._ran((*row, None, None), GRAPH, name):
                launching_calls.add(ran[0])
        return launching_calls

    def _ran(
        self, row: Row, kind: int, name: str, *, selected: str | None = None, size: int = 0
    ) -> _Ran | None:
        """Adds work to the account, if it is selected; None: it gets no record.

        Args:
            row: whose first columns are ``_RAN``.
            kind: as of ``tbsched.program.activity``.
            name: what ran.
            selected: the name by which a part of the profile can be selected.
            size: how many bytes were moved.
        """
        start, end, device, context, stream, correlation, of, graph, node = row[:_SPECIFIC]
        start, end = time_of("start", start), time_of("end", end)
        stream = maybe("streamId", stream) or 0
        graph, node = maybe("graphId", graph) or None, maybe("graphNodeId", node) or None
        self._joined.add_node(graph, node)
        selection = self._selection
        if not (selection.takes(stream, selected) and selection.takes_time(start, self._first_ns)):
            return None
        if end < start:
            end = start
            self._backwards += 1
        if kind == MIGRATION:
            self._migrations[name] += 1
        process = process_of(of)
        process_index = self._process_index(process)
        device = maybe("deviceId", device, MAX_DEVICES)
        gpu = self._gpus.of_row(process, device, context)
        if gpu is None:
            gpu = 0
            self._without_gpu += 1
        context = maybe("contextId", context)
        owner = (process_index, gpu) if process_index else gpu
        stream = self._joined.streams.of(owner, FileStream(context, stream))
        correlation = _correlation(correlation, process_index)
        added = self._joined.activity.add_work(
            gpu, kind, name, stream + (process_index << _PROCESS_BITS), start, end, correlation,
            size=size,
        )  # fmt: skip
        if process_index:
            return None
        return correlation, (
            start, end, gpu, context or 0, stream, graph, node, added,
        )  # fmt: skip

    def _process_index(self, process: int | None) -> int:
        """Returns the index of a process; 0: the predicted one, also for unknown processes."""
        if process is None or self._process is None:
            return 0
        return self._process_indices.setdefault(process, len(self._process_indices))

    def _add_calls(self) -> None:
        """Adds the calls of CUDA."""
        activity, joined, text = self._joined.activity, self._joined, self._tables.text
        columns = ("start", "end", "globalTid", "correlationId", "nameId", "name")
        for start, end, thread, correlation_id, name_id, name in self._tables.rows(CALLS, columns):
            name = text(name if isinstance(name, str) else name_id)
            start, end = time_of("start", start), time_of("end", end)
            process = process_of(thread)
            process_index = self._process_index(process)
            correlation = _correlation(correlation_id, process_index)
            if process_index:
                activity.add_call(name, process, thread, start, end, correlation)
            else:
                joined.add_call(correlation, name, process, thread, start, end)

    def _add_events(self) -> None:
        """Adds records of CUDA events, and waits for them."""
        joined = self._joined
        columns = ("streamId", "eventId", "correlationId", "globalPid", "deviceId", "contextId")
        for stream, event, correlation_id, process, *device_and_context in self._tables.rows(
            RECORDED, columns
        ):
            stream, event = _number_or_none("streamId", stream), _number_or_none("eventId", event)
            if self._process_index(process_of(process)) or stream is None or event is None:
                continue
            gpu = self._gpu(process, *device_and_context)
            context = _number_or_none("contextId", device_and_context[1])
            recording = FileStream(context, stream)
            joined.add_recorded(_correlation(correlation_id, 0), event, recording, gpu)
        known = {event for event, _ in joined.recorded.values()}
        for stream, event, correlation_id, process, *device_and_context in self._tables.rows(
            WAITS, columns
        ):
            stream, event = _number_or_none("streamId", stream), _number_or_none("eventId", event)
            if not self._process_index(process_of(process)):
                context = _number_or_none("contextId", device_and_context[1])
                waiting = None if stream is None else FileStream(context, stream)
                waited = Waited(waiting, event if event in known else None)
                joined.add_wait(
                    _correlation(correlation_id, 0), waited, self._gpu(process, *device_and_context)
                )

    def _gpu(self, process: object, device: object, context: object) -> int | None:
        """Returns the GPU of a wait or record; None: the export does not say it."""
        return self._gpus.of_row(process_of(process), _number_or_none("deviceId", device), context)


def _correlation(correlation_id: object, process_index: int) -> int:
    """Returns a number that joins work and call, in one process only."""
    if type(correlation_id) is int and 0 < correlation_id < 1 << _PROCESS_BITS:
        return correlation_id + (process_index << _PROCESS_BITS)
    return -1


def _number_or_none(name: str, value: object) -> int | None:
    """Returns a number from 0 for a field; None: the field is empty."""
    number = maybe(name, value)
    return None if number == _NONE else number


def _three(name: str, values: Row) -> tuple[int, int, int] | None:
    """Returns a size in three directions; None: the file does not say it."""
    if None in values:
        return None
    x, y, z = (whole(f"{name}{axis}", value) for axis, value in zip("XYZ", values, strict=True))
    return x, y, z


def _clustered(cluster: tuple[int, int, int] | None) -> int | None:
    """Returns the blocks of a cluster; a dimension of 0 counts as 1; None: unknown."""
    return None if cluster is None else math.prod(max(1, size) for size in cluster)
