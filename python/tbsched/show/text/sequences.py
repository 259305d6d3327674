"""Sequences as text."""

from __future__ import annotations

from typing import assert_never

from rich.table import Table

from tbsched.program.sequence import (
    GraphLaunch,
    Launch,
    RecordEvent,
    Release,
    Sequence,
    WaitEvent,
)
from tbsched.show.text.tables import render, table_of
from tbsched.show.words import counted, launch_words, size_of

EVENTS_SHOWN = 50


def sequence_short(sequence: Sequence) -> str:
    """How much is in it."""
    others = sum(not event.launches for event in sequence)
    return size_of(sequence.launches) + (f", {counted(others, 'other event')}" if others else "")


def sequence_text(sequence: Sequence) -> str:
    """A row per event."""
    lines = [sequence_short(sequence), render(events_table(sequence))]
    if len(sequence) > EVENTS_SHOWN:
        lines.append(f"and {counted(len(sequence) - EVENTS_SHOWN, 'event')} more")
    return "\n".join(lines)


def events_table(sequence: Sequence) -> Table:
    """The first events, a row each."""
    rows, number = [], 0
    for event in sequence.events[:EVENTS_SHOWN]:
        match event:
            case Launch():
                rows.append(("launch", str(number), event.name or "", launch_words(event)))
                number += 1
            case GraphLaunch():
                many = size_of(event.launches)
                rows.append(("graph", str(number), "", f"{many}, in stream {event.stream}"))
                number += len(event.launches)
            case Release():
                rows.append(("release", str(event.launch), "", ""))
            case RecordEvent():
                rows.append(("record", str(event.event), "", f"in stream {event.stream}"))
            case WaitEvent():
                rows.append(("wait", str(event.event), "", f"in stream {event.stream}"))
            case _:
                assert_never(event)
    return table_of(("event", "number", "name", "blocks x threads"), rows, left=(0, 2, 3))
