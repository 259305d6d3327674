"""Sequences and graphs as HTML."""

from __future__ import annotations

from tbsched.program.events.graph import Graph
from tbsched.program.events.launch import Launch
from tbsched.program.sequence import Sequence
from tbsched.show.html.pages import card
from tbsched.show.html.parts import more_of, table_html
from tbsched.show.layout.colours import colours_of
from tbsched.show.text.sequences import (
    ROWS_SHOWN,
    Row,
    graph_short,
    nodes_as_rows,
    rows_of,
    rows_table,
    sequence_short,
)


def sequence_html(sequence: Sequence) -> str:
    """A row per event, and per node of a graph."""
    return _card(sequence_short(sequence), [*rows_of(sequence)], sequence.launches)


def graph_html(graph: Graph) -> str:
    """A row per node."""
    return _card(graph_short(graph), nodes_as_rows(graph), graph.launch().launches)


def _card(title: str, rows: list[Row], launches: tuple[Launch, ...]) -> str:
    colours = colours_of(launches)
    shown = rows[:ROWS_SHOWN]
    marks = ["transparent" if row.launch is None else colours[row.launch] for row in shown]
    more = more_of(len(rows), ROWS_SHOWN, "row")
    return card(title, table_html(rows_table(shown), more=more, marks=marks))
