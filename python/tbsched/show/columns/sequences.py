"""Sequences as a table: a row per event."""

from __future__ import annotations

from typing import Any, assert_never

from tbsched.program.events.kinds import KINDS
from tbsched.program.sequence import Event, Launch, RecordEvent, Release, Sequence, WaitEvent

_OF_LAUNCH = (
    "name", "blocks", "threads", "registers", "shared_memory", "local_memory", "carveout",
    "cluster", "priority",
)  # fmt: skip
_KEYS = {kind.event: kind.key for kind in KINDS}


def sequence_columns(sequence: Sequence) -> dict[str, Any]:
    """What the host issued, in order."""
    names = ("event", "launch", "cuda_event", "stream", *_OF_LAUNCH, "duration")
    found: dict[str, list[Any]] = {name: [] for name in names}
    launches = 0
    for event in sequence:
        row = {"event": _KEYS[type(event)], **_row(event)}
        if isinstance(event, Launch):
            row["launch"] = launches
            launches += 1
        for name, column in found.items():
            column.append(row.get(name))
    return dict(found)


def _row(event: Event) -> dict[str, Any]:
    match event:
        case Launch():
            row = {name: getattr(event, name) for name in _OF_LAUNCH}
            seconds = event.block_durations() if isinstance(event.duration, tuple) else None
            mean = getattr(event.duration, "mean", event.duration)
            row["duration"] = mean if seconds is None else float(seconds.mean())
            row["stream"] = None if event.stream is None else str(event.stream)
            return row
        case Release():
            return {"launch": event.launch}
        case RecordEvent() | WaitEvent():
            return {"cuda_event": event.event, "stream": str(event.stream)}
        case _:
            assert_never(event)
