"""Sequences as the core takes them."""

from __future__ import annotations

from tbsched import _core
from tbsched.program.sequence import LEGACY_STREAM, Launch, RecordEvent, Release, Sequence, Stream


def core_sequence(seq: Sequence) -> _core.Sequence:
    events = _core.Sequence()
    for event in seq.events:
        if isinstance(event, Launch):
            _append(events, event)
        elif isinstance(event, Release):
            events.release(event.launch)
        elif isinstance(event, RecordEvent):
            events.record_event(event.event, _core_stream(event.stream))
        else:
            events.wait_event(event.event, _core_stream(event.stream))
    return events


def _append(events: _core.Sequence, launch: Launch) -> None:
    events.launch(
        launch.blocks,
        launch.threads,
        launch.registers,
        launch.shared_memory,
        launch.local_memory,
        launch.carveout,
        launch.cluster,
        None if launch.stream is None else _core_stream(launch.stream),
        launch.priority,
        None if launch.duration is None else launch.duration_ns(),
    )


def _core_stream(stream: Stream) -> int:
    return _core.LEGACY_STREAM if stream == LEGACY_STREAM else int(stream)
