"""The tracks and packets of a Perfetto file. This imports perfetto, which is optional."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

import numpy as np
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from tbsched.program.arrays import Int64Array
from tbsched.views.files.packets import write
from tbsched.views.files.slices import in_lanes

_SEQUENCE = 1  # whose packets share names
_NUMBERS = ("launch", "first_block", "last_block", "blocks", "behind_launch")
_WORDS = ("kernel", "asks_for", "waited_for", "behind_kernel", "behind_node", "why")
_ARGUMENTS = {name: number for number, name in enumerate((*_NUMBERS, *_WORDS), 1)}


class Strings:
    """Texts that packets name by number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def numbers(self, texts: Iterable[str]) -> Int64Array:
        known = self._numbers
        return np.array([known.setdefault(text, len(known) + 1) for text in texts], np.int64)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._numbers.items())


class TrackWriter:
    """Tracks are written as they are found, and packets once all names are known.

    Args:
        file: where to.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._builder = StreamingTraceProtoBuilder(file)
        self.names, self.words = Strings(), Strings()
        self._tracks = 0
        self._processes = 0  # a GPU is shown as one
        self._flows = 0
        self._packets: list[tuple[Callable[..., TracePacket], dict[str, Int64Array]]] = []

    def end(self) -> None:
        """Writes what is left of the file."""
        self._builder.write_packet(self._strings())
        for make, columns in self._packets:
            write(self._builder, make, columns)

    def flows(self, count: int) -> int:
        """The first of as many numbers of flows, which no other has."""
        self._flows += count
        return self._flows - count + 1

    def in_rows(
        self,
        group: int,
        titles: Sequence[str],
        row: Int64Array,
        begin_ns: Int64Array,
        end_ns: Int64Array,
    ) -> Int64Array:
        """Returns the track of each slice, int64 (slices,), after it has added these tracks to
        ``group``. Slices of one row that overlap get several tracks of its title, which Perfetto
        shows below each other."""
        lane, rows = in_lanes(row, begin_ns, end_ns)
        tracks = [self.track(group, titles[k], rank=k) for k in rows.tolist()]
        return np.array(tracks, np.int64)[lane]

    def slice(
        self, begin_ns: Int64Array, end_ns: Int64Array, track: Int64Array, **rest: Int64Array
    ) -> None:
        """Adds a slice for each begin and end, on its track, with arguments.

        Args:
            begin_ns, end_ns, track: int64 (slices,).
            rest: by argument, for each slice the id of a text or name.
        """
        # Ends first: of packets of one time Perfetto takes them in the order of the file.
        self._packets.insert(0, (_end, {"time_ns": end_ns, "track": track}))
        self.add(_begin, time_ns=begin_ns, track=track, **rest)

    def add(self, make: Callable[..., TracePacket], **columns: Int64Array) -> None:
        self._packets.append((make, columns))

    def track(
        self,
        parent: int | None,
        name: str,
        about: str = "",
        *,
        rank: int | None = None,
        counts: str = "",
    ) -> int:
        """Adds a track, and returns its id."""
        self._tracks += 1
        packet = self._builder.create_packet()
        track = packet.track_descriptor
        track.uuid = self._tracks
        track.child_ordering = TrackDescriptor.EXPLICIT
        if parent is None:
            self._processes += 1
            track.process.pid, track.process.process_name = self._processes, name
        else:
            track.parent_uuid, track.name = parent, name
            track.sibling_order_rank = self._tracks if rank is None else rank
        if about:
            track.description = about
        if counts:
            track.counter.unit_name = track.counter.y_axis_share_key = counts
        self._builder.write_packet(packet)
        return self._tracks

    def _strings(self) -> TracePacket:
        """Returns all texts, at which the sequence of packets begins."""
        packet = TracePacket(trusted_packet_sequence_id=_SEQUENCE)
        packet.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        data = packet.interned_data
        for name, string_id in self.names:
            data.event_names.add(iid=string_id, name=name)
        for name, string_id in _ARGUMENTS.items():
            data.debug_annotation_names.add(iid=string_id, name=name)
        for name, string_id in self.words:
            data.debug_annotation_string_values.add(iid=string_id, str=name.encode())
        return packet


def _packet(kind: TrackEvent.Type.ValueType, time_ns: int, track: int) -> TracePacket:
    """Returns a packet for an event of a kind, at a time, on a track."""
    packet = TracePacket(timestamp=time_ns, trusted_packet_sequence_id=_SEQUENCE)
    packet.sequence_flags = TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
    packet.track_event.type, packet.track_event.track_uuid = kind, track
    return packet


def _event_packet(
    kind: TrackEvent.Type.ValueType,
    time_ns: int,
    track: int,
    name: int,
    *,
    flow: int | None = None,
    flow_end: int | None = None,
    **arguments: int,
) -> TracePacket:
    """Returns a packet for an event with an interned name."""
    packet = _packet(kind, time_ns, track)
    event = packet.track_event
    event.name_iid = name
    if flow is not None:
        event.flow_ids.append(flow)
    if flow_end is not None:
        event.terminating_flow_ids.append(flow_end)
    for argument, value in arguments.items():
        field = "string_value_iid" if argument in _WORDS else "uint_value"
        event.debug_annotations.add(name_iid=_ARGUMENTS[argument], **{field: value})
    return packet


_begin = functools.partial(_event_packet, TrackEvent.TYPE_SLICE_BEGIN)


instant = functools.partial(_event_packet, TrackEvent.TYPE_INSTANT)


_end = functools.partial(_packet, TrackEvent.TYPE_SLICE_END)


def count(time_ns: int, track: int, value: int) -> TracePacket:
    packet = _packet(TrackEvent.TYPE_COUNTER, time_ns, track)
    packet.track_event.counter_value = value
    return packet
