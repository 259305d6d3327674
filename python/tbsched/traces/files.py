"""Trace files: JSON lines, a header per device and then a sequence a line."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from tbsched import parsing, storage, unpacking
from tbsched.program.checks import instances
from tbsched.traces.placement import DeviceInfo
from tbsched.traces.records import Header, header_line, read_header, read_record, record_line
from tbsched.traces.trace import Trace

MAX_LINE_BYTES = storage.MAX_BYTES


def load_traces(path: str | os.PathLike[str]) -> list[Trace]:
    """Reads a trace file: JSON lines, optionally ``.xz`` or ``.gz``, or a folder of such files.

    Arrays are read-only. The page on the trace format describes the file.

    Args:
        path: of the file or the folder.

    Raises:
        FileNotFoundError: no such file.
        TypeError: not a path.
        ValueError: not a trace file, or one of a newer version; the path of something that is
            neither a file nor a folder; lines or sizes beyond the limits of the format. The message
            names the file and the line.

    Example:
        >>> tb.save_traces("one.jsonl", [tb.predict(tb.Sequence([tb.Launch(8, 64, 32)]), "h200")])
        >>> [trace.sequence.launches for trace in tb.load_traces("one.jsonl")]
        [(Launch(blocks=8, threads=64, registers=32),)]
    """
    trace_path = storage.as_path(path)
    if storage.is_folder(trace_path):
        files = sorted(
            file for file in trace_path.iterdir() if is_trace_file(file) and file.is_file()
        )
        return [trace for file in files for trace in load_traces(file)]
    with storage.opened(trace_path) as packed:
        return read_traces(trace_path, packed)


def read_traces(path: Path, packed: BinaryIO) -> list[Trace]:
    """Reads an open trace file; the ending of its path says how it is packed.

    Raises:
        ValueError: as :func:`load_traces`.
    """
    traces: list[Trace] = []
    devices: tuple[DeviceInfo, ...] = ()
    lines = _lines(path, packed)
    line_number = 0
    try:
        for line_number in itertools.count(1):  # noqa: B007 - for the error
            line = next(lines, None)
            if line is None:
                break
            if not line.strip():
                continue
            record = parsing.json_value(line.decode())
            if not isinstance(record, dict):
                raise TypeError("an object is needed")
            if "tbsched_trace" in record:
                devices = read_header(record)
            elif not devices:
                raise ValueError("the first line must be a header")
            else:
                flags = b"true" in line or b"false" in line
                traces.append(read_record(record, devices, flags=flags))
    except _UNREADABLE as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else error
        hint = "" if devices else _NO_HEADER
        raise ValueError(f"{storage.shown(path)}, line {line_number}: {problem}{hint}") from error
    if not devices:
        raise ValueError(f"{storage.shown(path)}: no header line, not a trace file")
    return traces


_NO_HEADER = (
    '; a trace file begins with a header, {"tbsched_trace":1,…}; load_program, tbsched show and '
    "tbsched explain read profiles"
)
# What a file that holds no traces makes the readers raise.
_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
    *unpacking.DAMAGED,
)


def save_traces(path: str | os.PathLike[str], traces: Iterable[Trace]) -> None:
    """Writes traces of one or more devices; the file appears whole or not at all.

    The ending chooses the compression: ``.xz``, ``.gz`` or none. Each change of device writes a
    header line. A symbolic link stays, and the file that it leads to is replaced. A pipe or a
    device such as ``/dev/stdout`` is written to.

    Args:
        path: of the file; its folder must be there.
        traces: what to write, in this order.

    Raises:
        FileNotFoundError: no such folder.
        TypeError: not a path, or something in ``traces`` is not a :class:`Trace`.
        ValueError: a folder is at the path, or a trace is longer than :func:`load_traces` reads.

    Example:
        >>> trace = tb.predict(tb.Sequence([tb.Launch(8, 64, 32)]), "h200")
        >>> tb.save_traces("two.jsonl.gz", [trace, trace])
        >>> len(tb.load_traces("two.jsonl.gz"))
        2
    """
    trace_path = storage.as_path(path)
    checked = instances("save_traces", "traces", traces, Trace)
    with storage.replacing(trace_path) as file, _packed(trace_path, file) as out:
        header: Header | None = None
        for trace in checked:
            before, header = header, Header.of(trace, header)
            if header is not before:
                out.write(header_line(header))
            line = record_line(trace)
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(
                    f"save_traces: trace {trace.id!r} takes {len(line)} bytes, more than "
                    f"{MAX_LINE_BYTES}, the most of a line"
                )
            out.write(line)


def is_trace_file(path: Path) -> bool:
    """Returns whether the file's name says that it holds traces."""
    return path.name.endswith((".jsonl", ".jsonl.xz", ".jsonl.gz"))


def _lines(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yields the lines of a trace file, without a byte-order mark.

    Raises:
        ValueError: longer, or more, than those of traces.
    """
    for index, line in enumerate(unpacking.lines(file, path, MAX_LINE_BYTES)):
        yield line if index else line.removeprefix(b"\xef\xbb\xbf")


def _packed(path: Path, file: BinaryIO) -> contextlib.AbstractContextManager[BinaryIO]:
    """Returns the file to write to, packed as its name says."""
    packer = unpacking.PACKERS.get(path.suffix)
    return contextlib.nullcontext(file) if packer is None else packer(file)
