"""Trace files: JSON lines, a header per device and then a sequence a line."""

from __future__ import annotations

import contextlib
import gzip
import json
import lzma
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from tbsched.program.sequence import events_from_data, events_to_data
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.trace import Trace

TRACE_VERSION = 1


def load_traces(path: str | os.PathLike[str]) -> list[Trace]:
    """Reads a trace file: JSON lines, optionally ``.xz`` or ``.gz``, or a folder of such files.

    Raises:
        FileNotFoundError: no such file.
        TypeError: not a path.
        ValueError: not a trace file, or of a newer version; names the file and the line.
    """
    place = _place(path)
    if place.is_dir():
        files = sorted(file for file in place.iterdir() if is_trace_file(file))
        return [trace for file in files for trace in load_traces(file)]
    traces: list[Trace] = []
    device: DeviceInfo | None = None
    number = 0
    try:
        with _open(place, "rt") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007 - for the error below
                if not line.strip():
                    continue
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise TypeError("an object is needed")
                if "tbsched_trace" in record:
                    device = _header(record)
                elif device is None:
                    raise ValueError('the first line must be a header, {"tbsched_trace":1,…}')
                else:
                    traces.append(_record(record, device))
    except _UNREADABLE as error:
        raise ValueError(f"{place}, line {number}: {error}") from error
    if device is None:
        raise ValueError(f"{place}: no header line, not a trace file")
    return traces


# What a file that holds no traces makes the readers below raise.
_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    EOFError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
)


def save_traces(path: str | os.PathLike[str], traces: Iterable[Trace]) -> None:
    """Writes traces of one or more devices; the file appears whole or not at all.

    The ending chooses the compression: ``.xz``, ``.gz`` or none. Each change of device writes a
    header line.

    Raises:
        TypeError: not a path, or something in ``traces`` is not a :class:`Trace`.
    """
    place = _place(path)
    checked = list(traces)
    for trace in checked:
        if not isinstance(trace, Trace):
            raise TypeError(f"save_traces: a Trace is needed, got {trace!r}")
    temporary = place.with_name(f".{os.getpid()}.{place.name}")
    try:
        with _open(temporary, "wt") as out:
            device: DeviceInfo | None = None
            for trace in checked:
                if trace.device != device:
                    device = trace.device
                    out.write(header_line(device) + "\n")
                out.write(record_line(trace) + "\n")
        os.replace(temporary, place)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def header_line(device: DeviceInfo) -> str:
    """The header of a trace file, one line of JSON."""
    return _json(
        {
            "tbsched_trace": TRACE_VERSION,
            "device": {"name": device.name, "sms": device.sms, **device.details},
        }
    )


def record_line(trace: Trace) -> str:
    """One trace as a line of JSON."""
    placements = trace.placements
    record: dict[str, Any] = {
        "id": trace.id,
        "events": events_to_data(trace.sequence),
        "smid": [placement.smid.tolist() for placement in placements],
    }
    for key in _ARRAYS:
        columns = [getattr(placement, key) for placement in placements]
        if key == "final_smid" and all(column is not None for column in columns):
            # null: as in smid. Most blocks are placed at once, and files stay half the size.
            same = [np.array_equal(p.smid, c) for p, c in zip(placements, columns, strict=True)]
            record[key] = [None if s else c.tolist() for s, c in zip(same, columns, strict=True)]
        elif any(column is not None for column in columns):
            record[key] = [None if column is None else column.tolist() for column in columns]
    if any(placement.limiter for placement in placements):
        record["limiter"] = [placement.limiter for placement in placements]
    return _json({**trace.extra, **record})


def is_trace_file(path: Path) -> bool:
    """Whether the file's name says that it holds traces."""
    return path.name.endswith((".jsonl", ".jsonl.xz", ".jsonl.gz"))


_ARRAYS: dict[str, type[np.int32] | type[np.int64]] = {
    "final_smid": np.int32,
    "start_ns": np.int64,
    "end_ns": np.int64,
    "warp_slots": np.int32,
}


def _header(record: dict[str, Any]) -> DeviceInfo:
    version = record["tbsched_trace"]
    if version != TRACE_VERSION:
        raise ValueError(
            f"trace format version {version!r}; this tbsched reads version {TRACE_VERSION}: "
            "install a newer tbsched"
        )
    device = dict(record["device"])
    return DeviceInfo(str(device.pop("name")), int(device.pop("sms")), device)


def _record(record: dict[str, Any], device: DeviceInfo) -> Trace:
    sequence = events_from_data(record.pop("events"))
    smids = record.pop("smid")
    columns = {key: record.pop(key, None) for key in (*_ARRAYS, "limiter")}

    def column(key: str, launch: int, dtype: type[np.int32] | type[np.int64]) -> Any:
        values = columns[key]
        if values is None:
            return None
        if values[launch] is None:
            return np.array(smids[launch], dtype) if key == "final_smid" else None
        return np.array(values[launch], dtype)

    placements = tuple(
        Placement(
            smid=np.array(smid, np.int32),
            limiter=None if columns["limiter"] is None else columns["limiter"][launch],
            **{key: column(key, launch, dtype) for key, dtype in _ARRAYS.items()},
        )
        for launch, smid in enumerate(smids)
    )
    return Trace(sequence, device, placements, id=str(record.pop("id", "")), extra=record)


def _place(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise TypeError(f"path: a string or a path is needed, got {path!r}") from None


def _open(path: Path, mode: str) -> IO[str]:
    if path.suffix == ".xz":
        return lzma.open(path, mode, encoding="utf-8")  # type: ignore[return-value]
    if path.suffix == ".gz":
        return cast("IO[str]", gzip.open(path, mode, encoding="utf-8"))
    return cast("IO[str]", open(path, mode, encoding="utf-8"))


def _json(data: object) -> str:
    return json.dumps(data, separators=(",", ":"))
