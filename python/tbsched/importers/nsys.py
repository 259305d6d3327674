"""Exports of Nsight Systems to SQLite, whose columns differ between versions."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from tbsched import storage
from tbsched.errors import shown
from tbsched.importers.reading.joined import Joined, Waited
from tbsched.importers.reading.selection import Selection
from tbsched.importers.records import Kernel, Recording, Transfer
from tbsched.progress import bar

NAME = "Nsight Systems export (SQLite)"
_MAGIC = b"SQLite format 3\0"
_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
_MEMSETS = "CUPTI_ACTIVITY_KIND_MEMSET"
_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_WAITS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
_RECORDED = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_STREAMS = "TARGET_INFO_CUDA_STREAM"
_CONTEXTS = "TARGET_INFO_CUDA_CONTEXT_INFO"
_GPUS = "TARGET_INFO_GPU"
_DEVICES = "TARGET_INFO_CUDA_DEVICE"
_STRINGS = "StringIds"
_LAUNCH_TYPES = "ENUM_CUDA_KERNEL_LAUNCH_TYPE"
_MEMORY_KINDS = "ENUM_CUDA_MEM_KIND"
_KNOWN_TABLES = frozenset({
    _KERNELS, _COPIES, _MEMSETS, _CALLS, _WAITS, _RECORDED, _GRAPHS, _STREAMS, _CONTEXTS, _GPUS,
    _DEVICES, _STRINGS, _LAUNCH_TYPES, _MEMORY_KINDS,
})  # fmt: skip
_RAN = (
    "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphId",
    "graphNodeId",
)  # fmt: skip
_KERNEL_COLUMNS = (
    *_RAN, "demangledName", "shortName", "mangledName", "name", "launchType", "registersPerThread",
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory",
    "dynamicSharedMemory", "localMemoryPerThread", "sharedMemoryExecuted", "clusterX", "clusterY",
    "clusterZ", "sharedMemoryRequestedPercentage", "greenContextId",
)  # fmt: skip
_MOVE_COLUMNS = (*_RAN, "bytes", "copyKind", "srcKind", "dstKind")
_RAN_FIELDS = (
    "start_ns", "end_ns", "device", "context", "stream", "executable", "node",
)  # fmt: skip
_KERNEL_FIELDS = (
    *_RAN_FIELDS, "name", "grid", "block", "registers", "static_shared_memory",
    "dynamic_shared_memory", "local_memory", "cluster", "carveout", "shared_memory_executed",
    "cooperative", "green_context",
)  # fmt: skip
_MOVE_FIELDS = (*_RAN_FIELDS, "bytes", "kind", "pinned")
# CUPTI's numbers.
_COPY_KINDS = {
    1: "h2d", 2: "d2h", 3: "h2d", 4: "d2h", 5: "d2d", 6: "d2d", 7: "d2d", 8: "d2d", 10: "d2d",
    11: "h2d", 12: "d2h", 13: "d2d",
}  # fmt: skip
_NON_BLOCKING, _NULL = 2, 3  # the kinds of streams
_NOBODY = 2**32 - 1  # in the place of a stream or an event
_LARGEST = 2**63 - 1
_UNKNOWN_WAITS = (
    "The file does not say for which work streams wait in {count} calls; Nsight Systems writes it "
    "with --cuda-event-trace=true."
)
_WHOLE_GRAPHS = (
    "The kernels of {count} launches of graphs: left out. Nsight Systems writes them with "
    "--cuda-graph-trace=node."
)
_OTHER_PROCESSES = (
    "{count} kernels ran in other processes: only process {process} is read, and the others are "
    "assumed not to disturb it."
)
_DEFAULT_STREAM = "Which stream is the default one: assumed stream 7, CUPTI's number of it."
_SOURCES = {
    "name": f"{_KERNELS}.demangledName",
    "blocks": f"{_KERNELS}.gridX, gridY, gridZ",
    "threads": f"{_KERNELS}.blockX, blockY, blockZ",
    "registers": f"{_KERNELS}.registersPerThread",
    "shared_memory": f"{_KERNELS}.staticSharedMemory, dynamicSharedMemory",
    "local_memory": f"{_KERNELS}.localMemoryPerThread",
    "carveout": f"{_KERNELS}.sharedMemoryRequestedPercentage",
    "cluster": f"{_KERNELS}.clusterX, clusterY, clusterZ",
    "cooperative": f"{_KERNELS}.launchType",
    "stream": f"{_KERNELS}.streamId",
    "priority": f"{_STREAMS}.priority",
    "non_blocking": f"{_STREAMS}.flag",
    "duration": f"{_KERNELS}.start, end",
    "host": f"{_CALLS}.start, end, globalTid",
    "copies": f"{_COPIES}, {_MEMSETS}",
    "events": f"{_RECORDED}, {_WAITS}",
    "graphs": f"{_KERNELS}.graphNodeId, {_CALLS}",
    "device": _GPUS,
}
_Row: TypeAlias = dict[str, Any]


def takes(head: bytes) -> bool:
    """Whether a file that begins so is one."""
    return head.startswith(_MAGIC)


def read(place: Path, selection: Selection) -> Recording:
    """What the export tells.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no database, one that is damaged, or a row that cannot be; names the file.
    """
    storage.opened(place).close()  # says what is there, if it is no file
    try:
        with contextlib.closing(_opened(place)) as database:
            return _Export(database, selection, place.name).recording()
    except (sqlite3.Error, OverflowError) as error:
        why = " ".join(str(error).split())[:200]  # it may quote what is in the file
        raise ValueError(
            f"{storage.shown(place)}: cannot be read as an SQLite database: {why}; was the export "
            "written and copied to its end, and is it unpacked?"
        ) from None
    except ValueError as error:
        raise ValueError(f"{storage.shown(place)}: {error}") from None


def _opened(place: Path) -> sqlite3.Connection:
    """The database, to which nothing is written, not even beside it."""
    database = sqlite3.connect(f"{place.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    database.execute("PRAGMA trusted_schema = OFF")
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    return database


class _Export:
    """The tables of an export, of which any may be missing, and any column."""

    def __init__(self, database: sqlite3.Connection, selection: Selection, name: str) -> None:
        self._database = database
        self._name = name
        self._selection = selection
        self._tables = self._found_tables()
        if not self._tables:
            raise ValueError(
                "an SQLite database without the tables of Nsight Systems; write one with: nsys "
                "export --type sqlite REPORT"
            )
        self._names: dict[object, str] = {}
        self._joined = Joined()
        self._missing: list[str] = []

    def recording(self) -> Recording:
        """All of it."""
        process = self._process()
        first_ns = self._first_ns() if self._selection.timed else 0
        self._add_kernels(process, first_ns)
        self._add_moves(process, first_ns)
        self._add_calls(process)
        self._add_events(process)
        streams = self._streams(process)
        device, sms = self._device(process)
        graphs = {row["correlationId"] for row in self._rows(_GRAPHS, ("correlationId",))}
        missing = [*self._missing, *self._joined.left_out]
        records = self._joined.records()
        if unseen := len(graphs - {getattr(record, "graph", None) for record in records}):
            missing.append(_WHOLE_GRAPHS.format(count=unseen))
        if self._joined.unknown_waits:
            missing.append(_UNKNOWN_WAITS.format(count=self._joined.unknown_waits))
        if not streams.legacy:
            missing.append(_DEFAULT_STREAM)
        return Recording(
            records=records, format=NAME, device=device, sms=sms, sources=self._sources(),
            missing=missing,
            legacy_streams=frozenset(streams.legacy or {7}), non_blocking=streams.non_blocking,
            priorities=streams.priorities,
        )  # fmt: skip

    def _sources(self) -> dict[str, str]:
        """Where fields stand, of those for which this version has a column."""
        has_carveout = "sharedMemoryRequestedPercentage" in self._tables.get(_KERNELS, ())
        return {k: v for k, v in _SOURCES.items() if k != "carveout" or has_carveout}

    def _found_tables(self) -> dict[str, set[str]]:
        """The columns of each table; views are none, as they can be anything."""
        rows = self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = [name for (name,) in rows if name in _KNOWN_TABLES]
        return {
            name: {row[1] for row in self._database.execute(f"PRAGMA table_info({name})")}
            for name in names
        }

    def _rows(self, table: str, columns: tuple[str, ...]) -> Iterator[_Row]:
        """Of each row these columns, None where the table has no such column."""
        if table in self._tables:
            known = self._tables[table]
            asked = ", ".join(f'"{name}"' if name in known else "NULL" for name in columns)
            for row in self._database.execute(f"SELECT {asked} FROM {table}"):
                yield dict(zip(columns, row, strict=True))

    def _process(self) -> int | None:
        """The process with the most kernels; None if there is only one, or nobody knows."""
        counts: dict[int, int] = {}
        for row in self._rows(_KERNELS, ("globalPid",)):
            if (process := _process_of(row["globalPid"])) is not None:
                counts[process] = counts.get(process, 0) + 1
        if len(counts) > 1:
            chosen = max(counts, key=lambda process: counts[process])
            others = sum(counts.values()) - counts[chosen]
            self._missing.append(_OTHER_PROCESSES.format(count=others, process=chosen))
            return chosen
        return next(iter(counts), None)

    def _first_ns(self) -> int:
        tables = (_KERNELS, _COPIES, _MEMSETS)
        rows = (row for table in tables for row in self._rows(table, ("start",)))
        return min((_whole(row, "start") for row in rows), default=0)

    def _add_kernels(self, process: int | None, first_ns: int) -> None:
        cooperative = self._numbers_of(_LAUNCH_TYPES, "COOPERATIVE")
        total = sum(1 for _ in self._rows(_KERNELS, ("start",)))
        with bar(f"reading {self._name}", total) as advance:
            for number, row in enumerate(self._rows(_KERNELS, _KERNEL_COLUMNS)):
                advance(number)
                if not _is_of(row, process):
                    continue
                name = self._name_of(row)
                ran = self._ran(row, name, first_ns)
                if ran is None:
                    continue
                cluster = [_maybe(row, f"cluster{axis}") for axis in "XYZ"]
                percent, kind = _maybe(row, "sharedMemoryRequestedPercentage"), row["launchType"]
                self._joined.add_work(_correlation(row), Kernel, _KERNEL_FIELDS, (
                    *ran, name, _three(row, "grid"), _three(row, "block"),
                    _maybe(row, "registersPerThread") or None, _maybe(row, "staticSharedMemory"),
                    _maybe(row, "dynamicSharedMemory"), _maybe(row, "localMemoryPerThread"),
                    None if None in cluster else math.prod(max(1, x or 1) for x in cluster),
                    percent if percent and percent <= 100 else None,  # 0: nobody asked
                    _maybe(row, "sharedMemoryExecuted"),
                    kind in cooperative if cooperative and kind is not None else None,
                    _maybe(row, "greenContextId") or None,
                ))  # fmt: skip

    def _add_moves(self, process: int | None, first_ns: int) -> None:
        pinned = self._numbers_of(_MEMORY_KINDS, "PINNED")
        pageable = self._numbers_of(_MEMORY_KINDS, "PAGEABLE")
        for table in (_COPIES, _MEMSETS):
            for row in self._rows(table, _MOVE_COLUMNS):
                ran = self._ran(row, None, first_ns) if _is_of(row, process) else None
                if ran is None:
                    continue
                ends = {row["srcKind"], row["dstKind"]}
                memory = False if ends & pageable else True if ends & pinned else None
                kind = _COPY_KINDS.get(row["copyKind"], "unknown") if table == _COPIES else "memset"
                self._joined.add_work(_correlation(row), Transfer, _MOVE_FIELDS, (
                    *ran, _whole(row, "bytes"), kind, memory,
                ))  # fmt: skip

    def _ran(self, row: _Row, name: str | None, first_ns: int) -> tuple[int | None, ...] | None:
        """The fields of work that ran; None if it is not wanted."""
        stream, start, end = (_whole(row, field) for field in ("streamId", "start", "end"))
        if end < start:
            raise ValueError(f"work in stream {stream} ended at {end} ns, before {start}")
        selection = self._selection
        if not (selection.takes(stream, name) and selection.takes_time(start, first_ns)):
            return None
        return (
            start, end, _maybe(row, "deviceId") or 0, _maybe(row, "contextId") or 0, stream,
            _maybe(row, "graphId") or None, _maybe(row, "graphNodeId") or None,
        )  # fmt: skip

    def _add_calls(self, process: int | None) -> None:
        columns = ("start", "end", "globalTid", "correlationId", "nameId", "name")
        for row in self._rows(_CALLS, columns):
            if process not in (None, _process_of(row["globalTid"]) or process):
                continue
            name = row["name"] if isinstance(row["name"], str) else self._string(row["nameId"])
            start, end = _whole(row, "start"), _whole(row, "end")
            self._joined.add_call(_correlation(row), name, row["globalTid"], start, end)

    def _add_events(self, process: int | None) -> None:
        columns = ("streamId", "eventId", "correlationId", "globalPid")
        for row in self._rows(_RECORDED, columns):
            stream, event = _nobody(row, "streamId"), _nobody(row, "eventId")
            if _is_of(row, process) and stream is not None and event is not None:
                self._joined.recorded[_correlation(row)] = (event, stream)
        known = {event for event, _ in self._joined.recorded.values()}
        for row in self._rows(_WAITS, columns):
            if _is_of(row, process):
                stream, event = _nobody(row, "streamId"), _nobody(row, "eventId")
                waited = Waited(stream, event if event in known else None)
                self._joined.waited[_correlation(row)] = waited

    def _streams(self, process: int | None) -> _Streams:
        """What the tables tell of streams as such."""
        found = _Streams()
        for row in self._rows(_STREAMS, ("streamId", "processId", "priority", "flag")):
            stream = _maybe(row, "streamId")
            if stream is None or process not in (None, row["processId"] or process):
                continue
            if row["flag"] == _NULL:
                found.legacy.add(stream)
            elif row["flag"] is not None:
                found.non_blocking[stream] = row["flag"] == _NON_BLOCKING
            if type(row["priority"]) is int:
                found.priorities[stream] = row["priority"]
        for row in self._rows(_CONTEXTS, ("nullStreamId", "processId")):
            stream = _maybe(row, "nullStreamId")
            if stream is not None and process in (None, row["processId"] or process):
                found.legacy.add(stream)
        return found

    def _device(self, process: int | None) -> tuple[str | None, int | None]:
        """The name of the GPU, and how many SMs it has."""
        wanted = self._joined.device
        for row in self._rows(_DEVICES, ("gpuId", "cudaId", "pid")):
            if row["cudaId"] == wanted and process in (None, row["pid"] or process):
                wanted = row["gpuId"]
                break
        for row in self._rows(_GPUS, ("id", "name", "smCount")):
            if row["id"] == wanted:
                name, sms = row["name"], row["smCount"]
                return name if isinstance(name, str) else None, sms if type(sms) is int else None
        return None, None

    def _numbers_of(self, table: str, word: str) -> set[int]:
        """The numbers of an enumeration whose names have a word."""
        rows = self._rows(table, ("id", "name"))
        return {row["id"] for row in rows if word in str(row["name"])}

    def _name_of(self, row: _Row) -> str:
        if isinstance(row["name"], str):
            return row["name"]
        columns = ("demangledName", "shortName", "mangledName")
        return self._string(next((row[c] for c in columns if row[c] is not None), None))

    def _string(self, number: object) -> str:
        """The string of a number; older exports have it in the number's place."""
        if isinstance(number, str):
            return number
        found = self._names.get(number)
        if found is None:
            asked = f"SELECT value FROM {_STRINGS} WHERE id = ?"
            known = _STRINGS in self._tables and type(number) is int
            row = self._database.execute(asked, (number,)).fetchone() if known else None
            if row is None or not isinstance(row[0], str):
                raise ValueError(f"{_STRINGS}: no string has the number {shown(number)}")
            found = self._names[number] = row[0]
        return found


@dataclass(slots=True)
class _Streams:
    """What is known of streams, by their numbers."""

    legacy: set[int] = field(default_factory=set)
    non_blocking: dict[int, bool] = field(default_factory=dict)
    priorities: dict[int, int] = field(default_factory=dict)


def _process_of(number: object) -> int | None:
    """The process of a serialised number of a process or a thread; None: nobody knows."""
    return (number >> 24) & 0xFFFFFF if type(number) is int else None


def _is_of(row: _Row, process: int | None) -> bool:
    return process in (None, _process_of(row["globalPid"]) or process)


def _correlation(row: _Row) -> int:
    """Its number; work without one has a number that no call has."""
    number = row["correlationId"]
    return number if type(number) is int else -1


def _whole(row: _Row, name: str) -> int:
    value = row[name]
    if type(value) is int and 0 <= value <= _LARGEST // 2:
        return value
    raise ValueError(f"{name}: a number from 0 is needed, got {shown(value)}")


def _maybe(row: _Row, name: str) -> int | None:
    return None if row[name] is None else _whole(row, name)


def _nobody(row: _Row, name: str) -> int | None:
    value = _maybe(row, name)
    return None if value == _NOBODY else value


def _three(row: _Row, name: str) -> tuple[int, int, int]:
    x, y, z = (_whole(row, f"{name}{axis}") for axis in "XYZ")
    return x, y, z
