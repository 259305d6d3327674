"""The lines of trace files: what a header and a record say, written and read with every check."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, NamedTuple, assert_never

import numpy as np
import numpy.typing as npt

from tbsched.errors import shown
from tbsched.program.arrays import Int64Array
from tbsched.program.checks import integer
from tbsched.program.events.streams import MAX_GPUS
from tbsched.program.sequence import (
    Copy,
    Event,
    GraphLaunch,
    HostCall,
    HostFunction,
    Launch,
    Memset,
    RecordEvent,
    Release,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
    events_from_data,
    events_to_data,
)
from tbsched.program.written import given_fields
from tbsched.traces.annotations import MAX_NS, NEVER_NS, called, check_known, known_times
from tbsched.traces.hang import hang_from_data, hang_to_data
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.trace import Trace

TRACE_VERSION = 3
# Fields of launches that version 1 does not know.
_OF_VERSION_2 = {
    "partition", "cooperative", "non_blocking", "programmatic", "trigger", "memory_wait",
    "completion_event", "first_use", "delay", "host",
}  # fmt: skip


class _Kind(NamedTuple):
    """Type of a record's numbers: its codes in the two libraries, and the largest magnitude."""

    code: str
    dtype: type[np.int32] | type[np.int64]
    most: int


_INT32 = _Kind("i", np.int32, 2**31 - 1)
_TIME = _Kind("q", np.int64, MAX_NS)
_ARRAYS = {  # arrays of placements
    "smid": _INT32,
    "final_smid": _INT32,
    "start_ns": _TIME,
    "end_ns": _TIME,
    "warp_slots": _INT32,
}
_KINDS = {**_ARRAYS, "transfer_ns": _TIME}
_OTHERS = ("start_ns", "end_ns", "warp_slots")  # as Placement has them
_MAX_SMS = 65536


@dataclass(frozen=True, slots=True)
class Header:
    """Header: what the traces behind it have in common.

    Attributes:
        devices: the traces are of them, one per GPU.
        version: the lowest of the format that has what they say.
    """

    devices: tuple[DeviceInfo, ...]
    version: int

    @classmethod
    def of(cls, trace: Trace, before: Header | None) -> Header:
        """Returns the header of a trace: the one before it in the file, if that applies."""
        version = _version(trace)
        if (
            before is None
            or before.devices != trace.devices
            or any(
                device.assumed != other.assumed
                for device, other in zip(before.devices, trace.devices, strict=True)
            )
        ):
            return cls(trace.devices, version)
        return before if version <= before.version else cls(trace.devices, version)


def _version(trace: Trace) -> int:
    if trace.hang is not None or trace.others:
        return 3
    return max(map(_version_of, trace.sequence), default=1)


def _version_of(event: Event) -> int:
    """Returns the first version of trace files that can hold an event."""
    if getattr(event, "gpu", 0) or any(launch.meets is not None for launch in event.launches):
        return 3
    if isinstance(event, Copy) and event.kind == "p2p":
        return 3
    match event:
        case HostFunction() | HostCall() | WriteValue() | WaitValue():
            return 3
        case GraphLaunch() if event.graph.is_nested or event.graph.memory:
            return 3
        case GraphLaunch() if any(
            isinstance(node, HostFunction | RecordEvent | WaitEvent) for node in event.graph.nodes
        ):
            return 3
        case GraphLaunch() | Copy() | Memset() | Synchronize():
            return 2
        case Release():
            return 1
        case RecordEvent(timing=True):
            return 3
        case Launch() | RecordEvent() | WaitEvent():
            return 1 if _OF_VERSION_2.isdisjoint(given_fields(event)) else 2
        case _:
            assert_never(event)


def header_line(header: Header) -> bytes:
    """Returns the header of a trace file, one line of JSON."""
    devices = [{"name": d.name, "sms": d.sms, **d.details} for d in header.devices]
    assumed = [None if d.assumed is None else list(d.assumed) for d in header.devices]
    written: dict[str, Any] = {"tbsched_trace": header.version}
    if len(devices) > 1:
        return _json({**written, "devices": devices, "assumed": assumed})
    written["device"] = devices[0]
    if assumed[0] is not None:
        written["assumed"] = assumed[0]
    return _json(written)


def record_line(trace: Trace) -> bytes:
    """Returns one trace as a line of JSON."""
    placements = trace.placements
    record: dict[str, Any] = {"id": trace.id, "events": events_to_data(trace.sequence)}
    for key in _ARRAYS:
        columns = [getattr(placement, key) for placement in placements]
        if key == "final_smid" and all(column is not None for column in columns):
            # null: as in smid. Most blocks are placed at once, and files stay half the size.
            is_final = [np.array_equal(p.smid, c) for p, c in zip(placements, columns, strict=True)]
            record[key] = [
                None if s else c.tolist() for s, c in zip(is_final, columns, strict=True)
            ]
        elif key == "smid" or any(column is not None for column in columns):
            record[key] = [None if column is None else column.tolist() for column in columns]
    if any(placement.limiter for placement in placements):
        record["limiter"] = [placement.limiter for placement in placements]
    if trace.transfer_ns is not None and len(trace.transfer_ns):
        record["transfer_ns"] = list(map(known_times, trace.transfer_ns))
    calls = {} if trace.call_ns is None else called(list(map(known_times, trace.call_ns)))
    if trace.hang is not None:
        for key in ("start_ns", "end_ns"):
            record[key] = [known_times(getattr(placement, key)) for placement in placements]
        blocks = [launch.blocks for launch in trace.sequence.launches]
        record["hang"] = hang_to_data(trace.hang, blocks)
    return _json({**calls, **trace.extra, **record})


def read_header(record: dict[str, Any]) -> tuple[DeviceInfo, ...]:
    """Returns the devices that a header names.

    Raises:
        TypeError, ValueError, KeyError: no header; of a newer version.
    """
    version = record["tbsched_trace"]
    if type(version) is not int or not 1 <= version <= TRACE_VERSION:
        raise ValueError(
            f"trace format version {shown(version)}; this tbsched reads versions 1 to "
            f"{TRACE_VERSION}: install a newer tbsched"
        )
    if "devices" not in record:
        return (_device(record["device"], record.get("assumed")),)
    devices, assumed = record["devices"], record.get("assumed")
    if not isinstance(devices, list) or not 1 <= len(devices) <= MAX_GPUS:
        raise TypeError(f"devices: a list of 1 to {MAX_GPUS} is needed, got {shown(devices)}")
    if assumed is None:
        assumed = [None] * len(devices)
    if not isinstance(assumed, list) or len(assumed) != len(devices):
        raise TypeError(f"assumed: a list for each device is needed, got {shown(assumed)}")
    return tuple(map(_device, devices, assumed))


def _device(data: object, assumed: object) -> DeviceInfo:
    """Returns the device that a record names."""
    if not isinstance(data, dict):
        raise TypeError(f"device: an object is needed, got {shown(data)}")
    details = dict(data)
    name, sms = details.pop("name"), details.pop("sms")
    if not isinstance(name, str):
        raise TypeError(f"device.name: a string is needed, got {shown(name)}")
    sms = integer("device", "sms", sms, 1, _MAX_SMS)
    return DeviceInfo(name, sms, details, _assumed(assumed))


def _assumed(paths: object) -> tuple[str, ...] | None:
    """Returns the paths of assumed fields that a record lists; None if it has no list."""
    if paths is None:
        return None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise TypeError(f"assumed: a list of strings is needed, got {shown(paths)}")
    return tuple(paths)


def read_record(
    record: dict[str, Any], devices: tuple[DeviceInfo, ...], *, flags: bool = True
) -> Trace:
    """Returns the trace of a record; unknown keys become its ``extra``.

    Args:
        record: the object of a line.
        devices: of the header before it.
        flags: whether ``true`` or ``false`` is anywhere in it, and may be among the numbers.

    Raises:
        TypeError, ValueError, KeyError: no record of a trace.
    """
    sequence = events_from_data(record.pop("events"))
    launches = len(sequence.launches)
    hang_data = record.pop("hang", None)
    hangs = hang_data is not None
    smid = list(_column("smid", record.pop("smid"), launches, flags, hangs))
    final_data = record.pop("final_smid", None)
    final_smid = _column("final_smid", final_data, launches, flags, hangs)
    if final_data is not None:
        final_smid = [a if b is None else b for a, b in zip(smid, final_smid, strict=True)]
    limiter = _limiters(record.pop("limiter", None), launches)
    columns = [_column(key, record.pop(key, None), launches, flags, hangs) for key in _OTHERS]
    placements = tuple(map(Placement, smid, final_smid, limiter, *columns))
    transfer_ns = _transfer_ns(record.pop("transfer_ns", None), flags, hangs)
    hang = hang_from_data(sequence, hang_data) if hangs else None
    check_known(record, launches, len(sequence), hangs=hangs)
    device, *further_devices = devices
    return Trace(
        sequence, device, placements, id=str(record.pop("id", "")), extra=record,
        transfer_ns=transfer_ns, others=tuple(further_devices), hang=hang,
    )  # fmt: skip


def _transfer_ns(rows: object, flags: bool, hangs: bool) -> Int64Array | None:
    """Returns the start and end of each copy and memset; None if the record has none."""
    if rows is None:
        return None
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise TypeError(f"transfer_ns: a list of lists is needed, got {shown(rows)}")
    return _table("transfer_ns", rows, flags, hangs) if rows else np.empty((0, 2), np.int64)


def _column(key: str, values: object, launches: int, flags: bool, hangs: bool) -> Iterable[Any]:
    """Returns one read-only array per launch, None where the record has none."""
    if values is None:
        return repeat(None, launches)
    read = _table if key == "warp_slots" else _numbers
    rows = _per_launch(key, values, launches)
    return [None if row is None else read(key, row, flags, hangs) for row in rows]


def _table(key: str, rows: list[list[int]], flags: bool, hangs: bool) -> npt.NDArray[Any]:
    """Returns rows of integers of one length as an array that cannot be written to; None in them
    only if the program hangs."""
    flat = _numbers(key, list(chain.from_iterable(rows)), flags, hangs)
    if len(set(map(len, rows))) != 1:
        raise ValueError(f"{key}: as many numbers for each block are needed")
    return flat.reshape(len(rows), -1)


def _numbers(key: str, values: list[Any], flags: bool, hangs: bool = False) -> npt.NDArray[Any]:
    """Returns integers as an array that cannot be written to; None among times only if the program
    hangs."""
    kind = _KINDS[key]
    try:
        # Unlike NumPy's, these arrays take no fractions and no text, and are made faster.
        integers = np.frombuffer(array(kind.code, values), kind.dtype)
    except TypeError:
        if kind is _TIME and hangs and isinstance(values, list) and None in values:
            return _numbers_or_never(key, values, flags)
        raise _no_integers(key, values) from None
    except OverflowError:
        raise ValueError(f"{key}: numbers outside -{kind.most}..{kind.most}") from None
    if flags and bool in map(type, values):
        raise _no_integers(key, values)
    if (
        kind is _TIME
        and integers.size
        and not (-kind.most <= integers.min() and integers.max() <= kind.most)
    ):
        raise ValueError(f"{key}: numbers outside -{kind.most}..{kind.most}")
    integers.flags.writeable = False
    return integers


def _numbers_or_never(key: str, values: list[Any], flags: bool) -> npt.NDArray[Any]:
    """Returns integers as an array, with ``NEVER_NS`` for None."""
    known = _numbers(key, [0 if time is None else time for time in values], flags)
    integers = np.where([time is None for time in values], NEVER_NS, known)
    integers.flags.writeable = False
    return integers


def _no_integers(key: str, values: object) -> TypeError:
    items = values if isinstance(values, list) else [values]
    wrong = next((item for item in items if type(item) is not int), values)
    return TypeError(f"{key}: integers are needed, got {shown(wrong)}")


def _per_launch(key: str, values: object, launches: int) -> list[Any]:
    """Returns a list that must have an item per launch, under ``key`` of the record."""
    if not isinstance(values, list):
        raise TypeError(f"{key}: a list with an item per launch is needed, got {shown(values)}")
    if len(values) != launches:
        raise ValueError(f"{key}: {len(values)} placements for {launches} launches")
    return values


def _limiters(values: object, launches: int) -> Iterable[str | None]:
    """Returns the limiter of each launch; None where the record has none."""
    if values is None:
        return repeat(None, launches)
    words = _per_launch("limiter", values, launches)
    for word in words:
        if word is not None and not isinstance(word, str):
            raise TypeError(f"limiter: a word or null is needed, got {shown(word)}")
    return words


def _json(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"
