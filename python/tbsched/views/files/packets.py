"""Packets of Perfetto traces, many alike at once. This imports perfetto, which is optional.

A packet takes Python microseconds to make, and a million blocks need millions. So packets that
differ in numbers alone are made once, with the package's own classes, and NumPy writes the numbers
into copies. A number takes as many bytes in all copies: readers of protocol buffers take varints
that are longer than they need be.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from tbsched.program.arrays import Int64Array

Bytes = npt.NDArray[np.uint8]
_AT_ONCE = 2**14  # packets that are compressed together
_ONES = 0x0101010101010101


def write(
    builder: StreamingTraceProtoBuilder,
    make: Callable[..., TracePacket],
    columns: Mapping[str, Int64Array],
) -> None:
    """Writes as many packets as the columns have rows, compressed as Perfetto has it.

    Args:
        builder: of the file.
        make: a packet from one number of each column, as keywords. Fields of fixed size may hold
            numbers, too.
        columns: int64 (packets,), from 0 on.
    """
    for begin in range(0, len(next(iter(columns.values()))), _AT_ONCE):
        rows = {name: column[begin : begin + _AT_ONCE] for name, column in columns.items()}
        together = builder.create_packet()
        together.compressed_packets = zlib.compress(copies(make, rows).data, 1)
        builder.write_packet(together)


def copies(make: Callable[..., TracePacket], columns: Mapping[str, Int64Array]) -> Bytes:
    """Returns the packets of :func:`write`, at least one, uint8 (packets, bytes of one)."""
    sizes = {name: _varint_bytes(int(column.max())) for name, column in columns.items()}
    # The two values of a column differ in each of their bytes, which tells where these stand.
    low = {name: 1 << 7 * (size - 1) for name, size in sizes.items()}
    high = {name: (1 << 7 * size) - 1 for name, size in sizes.items()}
    fixed = {name for name in columns if _is_fixed(make, low, name)}
    low |= dict.fromkeys(fixed, _ONES)
    high |= dict.fromkeys(fixed, 2 * _ONES)
    template = _serialized(make, low)
    count = len(next(iter(columns.values())))
    packets = np.tile(template, (count, 1))
    for name, column in columns.items():
        byte_positions = np.flatnonzero(template != _serialized(make, {**low, name: high[name]}))
        if name in fixed:
            packets[:, byte_positions] = column.astype("<u8").view(np.uint8).reshape(count, 8)
            continue
        for index, byte_position in enumerate(byte_positions.tolist()):
            more = 0x80 if index < len(byte_positions) - 1 else 0
            packets[:, byte_position] = (column >> 7 * index) & 0x7F | more
    return packets


def _serialized(make: Callable[..., TracePacket], values: dict[str, Any]) -> Bytes:
    return np.frombuffer(Trace(packet=[make(**values)]).SerializeToString(), np.uint8)


def _varint_bytes(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))


def _is_fixed(make: Callable[..., TracePacket], low: dict[str, int], name: str) -> bool:
    """Whether the field takes as many bytes whatever it holds."""
    short_value, long_value = ({**low, name: value} for value in (1, 2**62))
    return len(_serialized(make, short_value)) == len(_serialized(make, long_value))
