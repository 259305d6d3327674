"""Sequences as HTML."""

from __future__ import annotations

from tbsched.program.sequence import Sequence
from tbsched.show.html.pages import card
from tbsched.show.html.parts import more_of, table_html
from tbsched.show.layout.colours import colours_of
from tbsched.show.text.sequences import EVENTS_SHOWN, events_table, sequence_short


def sequence_html(sequence: Sequence) -> str:
    """A row per event."""
    launched = iter(colours_of(sequence.launches))
    marks = []
    for event in sequence.events[:EVENTS_SHOWN]:
        own = [next(launched) for _ in event.launches]
        marks.append(own[0] if own else "transparent")
    more = more_of(len(sequence), EVENTS_SHOWN, "event")
    return card(
        sequence_short(sequence), table_html(events_table(sequence), more=more, marks=marks)
    )
