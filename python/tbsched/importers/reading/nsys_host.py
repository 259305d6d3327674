"""What host threads did besides calls of CUDA, as an export of Nsight Systems has it."""

from __future__ import annotations

from tbsched.importers.reading.nsys_tables import (
    OVERHEADS,
    PROFILER,
    RANGES,
    SYSTEM_CALLS,
    Tables,
    process_of,
    time_of,
)
from tbsched.program.activity import ANNOTATION, FUNCTION, ActivityBuilder

# Tables of functions, and what stands before their names.
_FUNCTIONS = {SYSTEM_CALLS: "", OVERHEADS: "", PROFILER: "Nsight Systems: "}
_NAMED = ("start", "end", "globalTid", "nameId")


def add_host(tables: Tables, activity: ActivityBuilder) -> None:
    """Adds ranges of NVTX, calls of the system's libraries, and what CUDA and the profiler took.
    Raises ValueError: a row that cannot be."""
    for start, end, thread, text, name_id in tables.rows(
        RANGES, ("start", "end", "globalTid", "text", "textId")
    ):
        if end is None:
            continue  # a mark, a name of a thread, or a range that never ended
        name = tables.text(name_id if text is None else text)
        activity.add_host(ANNOTATION, name, process_of(thread), thread, *_times(start, end))
    for table, prefix in _FUNCTIONS.items():
        for start, end, thread, name_id in tables.rows(table, _NAMED):
            if end is not None:
                name, process = prefix + tables.text(name_id), process_of(thread)
                activity.add_host(FUNCTION, name, process, thread, *_times(start, end))


def _times(start: object, end: object) -> tuple[int, int]:
    """Returns start and end in ns, checked."""
    return time_of("start", start), time_of("end", end)
