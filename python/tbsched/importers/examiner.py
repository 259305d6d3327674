"""Logs of cuda_scheduling_examiner: a file for each of the threads that ran at once.

Each thread has a stream of its own. The logs of one run are a folder.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from tbsched import parsing, storage
from tbsched.errors import shown
from tbsched.importers.reading.selection import Selection
from tbsched.importers.records import Kernel, Ran, Record, Recording, SynchronizeCall

NAME = "cuda_scheduling_examiner log"
_MAX_LOGS = 1000
_MAX_NS = 2**60


def takes(head: bytes) -> bool:
    """Returns whether a file with these first bytes is a log of cuda_scheduling_examiner."""
    return head.lstrip().startswith(b"{") and b'"scenario_name"' in head


def read(path: Path, selection: Selection) -> Recording:
    """Returns what a log of cuda_scheduling_examiner recorded, or all logs of a folder.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a whole log, or a time or a number that cannot be; names file and field.
    """
    logs = sorted(path.glob("*.json")) if storage.is_folder(path) else [path]
    if len(logs) > _MAX_LOGS:
        raise ValueError(f"{storage.shown(path)}: {len(logs)} logs are more than {_MAX_LOGS}")
    records: list[Record] = []
    for index, log in enumerate(logs):
        try:
            records += _records(_content(log), index)
        except ValueError as error:
            raise ValueError(f"{storage.shown(log)}: {error}") from None
    first_ns = min((ran.start_ns for ran in records if isinstance(ran, Ran)), default=0)
    return Recording(
        records=selection.of_records(records, first_ns), format=NAME, sources=_SOURCES,
        missing=_MISSING, first_ns=first_ns if selection else None,
    )  # fmt: skip


def _content(log: Path) -> dict[str, Any]:
    """Returns the fields of a log, which must have times."""
    try:
        fields = parsing.json_value(storage.content(log), parse_float=Decimal)
    except ValueError as error:
        raise ValueError(f"not whole JSON: {error}; did the benchmark run to its end?") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("times"), list):
        raise ValueError('a log with a list "times" is needed')
    return fields


def _records(log: dict[str, Any], log_index: int) -> list[Record]:
    """Returns the kernels of a log, and when the host waited for them."""
    records: list[Record] = []
    for index, entry in enumerate(log["times"]):
        if not isinstance(entry, dict) or "block_times" not in entry:
            continue  # the first one is empty, others have times of the host
        try:
            records += _kernel(entry, str(log.get("label") or log.get("benchmark_name")), log_index)
        except ValueError as error:
            raise ValueError(f"times[{index}].{error}") from None
    return records


def _kernel(entry: dict[str, Any], benchmark: str, log_index: int) -> list[Record]:
    """Returns the records of a kernel of a benchmark."""
    blocks, threads = (_integer(entry, name, 1) for name in ("block_count", "thread_count"))
    times = _times(entry, "block_times")
    if len(times) != 2 * blocks:
        raise ValueError(f"block_times: two times per block are needed, got {len(times)}")
    starts, ends = times[::2], times[1::2]
    seconds = tuple((end - start) / 1e9 for start, end in zip(starts, ends, strict=True))
    if min(seconds) < 0:
        raise ValueError("block_times: a block ended before it started")
    calls = _times(entry, "cuda_launch_times") if "cuda_launch_times" in entry else []
    kernel = Kernel(
        name=str(entry.get("kernel_name") or benchmark), grid=(blocks, 1, 1), block=(threads, 1, 1),
        dynamic_shared_memory=_integer(entry, "shared_memory", 0), stream=log_index,
        start_ns=min(starts), end_ns=max(ends), block_seconds=seconds, thread=log_index,
        call_ns=calls[0] if len(calls) > 1 else None,
        return_ns=calls[1] if len(calls) > 1 else None,
    )  # fmt: skip
    waited = calls[2] if len(calls) > 2 else 0
    if not waited:
        return [kernel]
    wait = SynchronizeCall(stream=log_index, thread=log_index, call_ns=calls[1], return_ns=waited)
    return [kernel, wait]


def _integer(entry: dict[str, Any], name: str, low: int) -> int:
    """Returns an integer of a log's entry, checked."""
    value = entry.get(name)
    if type(value) is int and low <= value < 2**31:
        return value
    raise ValueError(f"{name}: a number from {low} is needed, got {shown(value)}")


def _times(entry: dict[str, Any], name: str) -> list[int]:
    """Returns the times of an entry in ns; the log has seconds."""
    seconds = entry.get(name)
    if not isinstance(seconds, list):
        raise ValueError(f"{name}: a list of seconds is needed, got {shown(seconds)}")
    times_ns = []
    for value in seconds:
        is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= _MAX_NS // 10**9:
            raise ValueError(f"{name}: seconds from 0 are needed, got {shown(value)}")
        times_ns.append(int(value * 10**9))
    return times_ns


_MISSING = [
    "The streams: assumed one for each log, non-blocking, of priority 0.",
    "Copies in and out: left out; the host takes their time.",
    "Which SMs a thread was confined to: assumed none.",
]
_SOURCES = {
    "name": "kernel_name, else label or benchmark_name",
    "blocks": "block_count",
    "threads": "thread_count",
    "shared_memory": "shared_memory",
    "stream": "one for each log",
    "duration": "block_times, of each block",
    "host": "cuda_launch_times",
}
