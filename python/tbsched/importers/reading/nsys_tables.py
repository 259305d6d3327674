"""The tables of an export of Nsight Systems: any may be missing, and any column."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, TypeAlias

from tbsched.errors import shown

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSETS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
WAITS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
RECORDED = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
RANGES = "NVTX_EVENTS"
SYSTEM_CALLS = "OSRT_API"
OVERHEADS = "CUPTI_ACTIVITY_KIND_OVERHEAD"  # of CUDA, such as the loading of functions
PROFILER = "PROFILER_OVERHEAD"
STREAMS = "TARGET_INFO_CUDA_STREAM"
NULL_STREAMS = "TARGET_INFO_CUDA_NULL_STREAM"
CONTEXTS = "TARGET_INFO_CUDA_CONTEXT_INFO"
GPUS = "TARGET_INFO_GPU"
CUDA_GPUS = "TARGET_INFO_CUDA_GPU"  # of versions whose GPUS has only names
DEVICES = "TARGET_INFO_CUDA_DEVICE"
LAUNCH_TYPES = ("ENUM_CUDA_KERNEL_LAUNCH_TYPE", "ENUM_CUDA_KRENEL_LAUNCH_TYPE")  # as it is spelled
MEMORY_KINDS = "ENUM_CUDA_MEM_KIND"
_STRINGS = "StringIds"
_KNOWN = frozenset({
    KERNELS, COPIES, MEMSETS, GRAPHS, CALLS, WAITS, RECORDED, RANGES, SYSTEM_CALLS, OVERHEADS,
    PROFILER, STREAMS, NULL_STREAMS, CONTEXTS, GPUS, CUDA_GPUS, DEVICES, *LAUNCH_TYPES,
    MEMORY_KINDS, _STRINGS,
})  # fmt: skip
_AMD = "rocpd_"  # how names of tables begin that the profilers of ROCm write
_FAR = 2**61  # ns, more than seventy years
Row: TypeAlias = tuple[Any, ...]


class Tables:
    """The tables of a database."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Looks at what is there. Raises ValueError: nothing of Nsight Systems."""
        self._database = database
        # Views are no tables, as they can be anything.
        rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = [name for (name,) in rows]
        self._columns = {
            name: {row[1] for row in database.execute(f"PRAGMA table_info({name})")}
            for name in names
            if name in _KNOWN
        }
        if not self._columns:
            if any(str(name).startswith(_AMD) for name in names):
                raise ValueError("a profile of ROCm, so of a GPU of AMD; tbsched knows NVIDIA's")
            raise ValueError(
                "an SQLite database without the tables of Nsight Systems; write one with: nsys "
                "export --type sqlite REPORT"
            )
        self._texts: dict[object, str] = {}
        keys = database.execute(f"PRAGMA table_info({_STRINGS})")
        if _STRINGS in self._columns and not any(row[1] == "id" and row[5] for row in keys):
            # Without an index, to look for each string would read all of them.
            texts = self.rows(_STRINGS, ("id", "value"))
            self._texts = {text_id: text for text_id, text in texts if isinstance(text, str)}

    def has(self, table: str, column: str) -> bool:
        """Returns whether a table is there, with a column."""
        return column in self._columns.get(table, ())

    def count(self, table: str) -> int:
        """Returns how many rows a table has."""
        if table not in self._columns:
            return 0
        # count(*) follows pages without a step that the limit of steps counts.
        rows = self._database.execute(f"SELECT sum(1) FROM {table}").fetchone()[0]
        return int(rows or 0)

    def rows(self, table: str, columns: tuple[str, ...]) -> Iterator[Row]:
        """Yields these columns of each row; None where the table has no such column."""
        known = self._columns.get(table)
        if known is None:
            return iter(())
        selected = ", ".join(f'"{name}"' if name in known else "NULL" for name in columns)
        return self._database.execute(f"SELECT {selected} FROM {table}")

    def text(self, text_id: object) -> str:
        """Returns the string of a number; older exports have it in the number's place."""
        if isinstance(text_id, str):
            return text_id
        text_of_id = self._texts.get(text_id)
        if text_of_id is None:
            query = f"SELECT value FROM {_STRINGS} WHERE id = ?"
            known = _STRINGS in self._columns and type(text_id) is int
            row = self._database.execute(query, (text_id,)).fetchone() if known else None
            text = None if row is None else row[0]
            text_of_id = text if isinstance(text, str) else f"string {shown(text_id)}"
            self._texts[text_id] = text_of_id
        return text_of_id

    def numbers_of(self, table: str, word: str) -> set[object]:
        """Returns the numbers of an enumeration whose names have a word."""
        return {number for number, name in self.rows(table, ("id", "name")) if word in str(name)}


def time_of(name: str, value: object) -> int:
    """Returns a time in ns; the clock may have begun later. Raises ValueError: not one."""
    if type(value) is int and -_FAR <= value <= _FAR:
        return value
    raise ValueError(f"{name}: nanoseconds are needed, got {shown(value)}")


def whole(name: str, value: object, max_value: int = _FAR) -> int:
    """Returns a number from 0.

    Raises:
        ValueError: not one.
    """
    if type(value) is int and 0 <= value <= max_value:
        return value
    limit = "" if max_value == _FAR else f" to {max_value}"
    raise ValueError(f"{name}: a number from 0{limit} is needed, got {shown(value)}")


def maybe(name: str, value: object, max_value: int = _FAR) -> int | None:
    """Returns a number from 0; None: the file does not say it. Raises ValueError: not one."""
    return None if value is None else whole(name, value, max_value)


def process_of(global_id: object) -> int | None:
    """Returns the process of a serialised number of a process or a thread; None: nobody knows."""
    return (global_id >> 24) & 0xFFFFFF if type(global_id) is int else None
