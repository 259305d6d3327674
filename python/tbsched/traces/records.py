"""The lines of trace files: what a header and a record say, written and read with every check."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable
from itertools import accumulate, chain, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tbsched.program.checks import integer
from tbsched.program.sequence import events_from_data, events_to_data
from tbsched.traces.annotations import MAX_NS, check_known
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.trace import Trace

TRACE_VERSION = 1


class _Kind(NamedTuple):
    """What numbers of a record become, and how far from 0 they may be."""

    dtype: type[np.int32] | type[np.int64]
    most: int


_INT32 = _Kind(np.int32, 2**31 - 1)
_TIME = _Kind(np.int64, MAX_NS)
_ARRAYS = {
    "smid": _INT32,
    "final_smid": _INT32,
    "start_ns": _TIME,
    "end_ns": _TIME,
    "warp_slots": _INT32,
}
_OTHERS = ("start_ns", "end_ns", "warp_slots")  # as Placement has them
_MAX_SMS = 65536


def header_line(device: DeviceInfo) -> bytes:
    """The header of a trace file, one line of JSON."""
    return _json(
        {
            "tbsched_trace": TRACE_VERSION,
            "device": {"name": device.name, "sms": device.sms, **device.details},
        }
    )


def record_line(trace: Trace) -> bytes:
    """One trace as a line of JSON."""
    placements = trace.placements
    record: dict[str, Any] = {"id": trace.id, "events": events_to_data(trace.sequence)}
    for key in _ARRAYS:
        columns = [getattr(placement, key) for placement in placements]
        if key == "final_smid" and all(column is not None for column in columns):
            # null: as in smid. Most blocks are placed at once, and files stay half the size.
            same = [np.array_equal(p.smid, c) for p, c in zip(placements, columns, strict=True)]
            record[key] = [None if s else c.tolist() for s, c in zip(same, columns, strict=True)]
        elif key == "smid" or any(column is not None for column in columns):
            record[key] = [None if column is None else column.tolist() for column in columns]
    if any(placement.limiter for placement in placements):
        record["limiter"] = [placement.limiter for placement in placements]
    return _json({**trace.extra, **record})


def read_header(record: dict[str, Any]) -> DeviceInfo:
    """The device that a header names.

    Raises:
        TypeError, ValueError, KeyError: no header; of a newer version.
    """
    version = record["tbsched_trace"]
    if version != TRACE_VERSION:
        raise ValueError(
            f"trace format version {version!r}; this tbsched reads version {TRACE_VERSION}: "
            "install a newer tbsched"
        )
    device = record["device"]
    if not isinstance(device, dict):
        raise TypeError(f"device: an object is needed, got {reprlib.repr(device)}")
    details = dict(device)
    name, sms = details.pop("name"), details.pop("sms")
    if not isinstance(name, str):
        raise TypeError(f"device.name: a string is needed, got {reprlib.repr(name)}")
    return DeviceInfo(name, integer("device", "sms", sms, 1, _MAX_SMS), details)


def read_record(record: dict[str, Any], device: DeviceInfo) -> Trace:
    """The trace of a record; keys that nobody knows become its ``extra``.

    Raises:
        TypeError, ValueError, KeyError: no record of a trace.
    """
    sequence = events_from_data(record.pop("events"))
    launches = len(sequence.launches)
    smid = list(_column("smid", record.pop("smid"), launches))
    given = record.pop("final_smid", None)
    final_smid = _column("final_smid", given, launches)
    if given is not None:
        final_smid = [a if b is None else b for a, b in zip(smid, final_smid, strict=True)]
    limiter = _limiters(record.pop("limiter", None), launches)
    others = [_column(key, record.pop(key, None), launches) for key in _OTHERS]
    placements = tuple(map(Placement, smid, final_smid, limiter, *others))
    check_known(record, launches)
    return Trace(sequence, device, placements, id=str(record.pop("id", "")), extra=record)


def _column(key: str, values: object, launches: int) -> Iterable[Any]:
    """One read-only array per launch, None where the record has none."""
    if values is None:
        return repeat(None, launches)
    rows = _per_launch(key, values, launches)
    if key == "warp_slots":
        return [None if row is None else _table(key, row) for row in rows]
    given = [row for row in rows if row is not None]
    numbers = _numbers(key, list(chain.from_iterable(given)))
    if len(given) < len(rows):
        return [None if row is None else _numbers(key, row) for row in rows]
    ends = accumulate(map(len, given), initial=0)
    return [numbers[begin:end] for begin, end in pairwise(ends)]


def _table(key: str, rows: list[list[int]]) -> npt.NDArray[Any]:
    numbers = _numbers(key, list(chain.from_iterable(rows)))
    if len(set(map(len, rows))) != 1:
        raise ValueError(f"{key}: as many numbers for each block are needed")
    return numbers.reshape(len(rows), -1)


def _numbers(key: str, given: list[Any]) -> npt.NDArray[Any]:
    """Whole numbers as an array that cannot be written to."""
    if not set(map(type, given)) <= {int}:
        wrong = next(value for value in given if type(value) is not int)
        raise TypeError(f"{key}: integers are needed, got {reprlib.repr(wrong)}")
    kind = _ARRAYS[key]
    # NumPy refuses what does not fit 64 bits, and would cut what does not fit 32.
    numbers = np.array(given, np.int64)
    most = kind.most
    if numbers.size and not (-most <= numbers.min() and numbers.max() <= most):
        raise ValueError(f"{key}: numbers outside -{most}..{most}")
    numbers = numbers.astype(kind.dtype, copy=False)
    numbers.flags.writeable = False
    return numbers


def _per_launch(key: str, values: object, launches: int) -> list[Any]:
    if not isinstance(values, list):
        raise TypeError(
            f"{key}: a list with an item per launch is needed, got {reprlib.repr(values)}"
        )
    if len(values) != launches:
        raise ValueError(f"{key}: {len(values)} placements for {launches} launches")
    return values


def _limiters(values: object, launches: int) -> Iterable[str | None]:
    if values is None:
        return repeat(None, launches)
    words = _per_launch("limiter", values, launches)
    for word in words:
        if word is not None and not isinstance(word, str):
            raise TypeError(f"limiter: a word or null is needed, got {reprlib.repr(word)}")
    return words


def _json(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"
