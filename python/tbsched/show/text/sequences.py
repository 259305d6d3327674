"""Sequences and graphs as text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from rich.table import Table

from tbsched.program.events.graph import Graph
from tbsched.program.events.transfers import transfer_key
from tbsched.program.sequence import (
    Copy,
    GraphLaunch,
    Launch,
    Memset,
    RecordEvent,
    Release,
    Sequence,
    Synchronize,
    WaitEvent,
)
from tbsched.show.layout.graphs import nodes_of
from tbsched.show.text.tables import render, table_of
from tbsched.show.words import (
    counted,
    host_words,
    launch_words,
    size_of,
    stream_words,
    synchronize_words,
    transfer_words,
)

ROWS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Row:
    """An event or a node of a graph.

    Attributes:
        cells: what it is, its number, its name, and what it asks for.
        launch: the number of the launch that it is; None if it is none.
    """

    cells: tuple[str, str, str, str]
    launch: int | None = None


def sequence_short(sequence: Sequence) -> str:
    """How much is in it."""
    others = sum(not event.launches for event in sequence)
    return size_of(sequence.launches) + (f", {counted(others, 'other event')}" if others else "")


def sequence_text(sequence: Sequence) -> str:
    """A row per event, and per node of a graph."""
    return f"{sequence_short(sequence)}\n{_table_text([*rows_of(sequence)])}"


def graph_short(graph: Graph) -> str:
    """How much is in it."""
    return f"{counted(len(graph.nodes), 'node')}, {counted(len(graph.edges), 'edge')}"


def graph_text(graph: Graph) -> str:
    """A row per node."""
    return f"{graph_short(graph)}\n{_table_text(nodes_as_rows(graph))}"


def nodes_as_rows(graph: Graph) -> list[Row]:
    """The nodes of a graph."""
    return [*rows_of(Sequence([graph.launch()]))][1:]


def _table_text(rows: list[Row]) -> str:
    text = render(rows_table(rows[:ROWS_SHOWN]))
    left = len(rows) - ROWS_SHOWN
    return f"{text}\nand {counted(left, 'row')} more" if left > 0 else text


def rows_table(rows: list[Row]) -> Table:
    """The rows as a table."""
    headings = ("event", "number", "name", "blocks x threads")
    return table_of(headings, [row.cells for row in rows], left=(0, 2, 3))


def rows_of(sequence: Sequence) -> Iterator[Row]:
    """What the host issued, in order; the nodes of a graph come after it."""
    nodes = nodes_of(sequence)
    launches, transfers, graphs = itertools.count(), itertools.count(), itertools.count()
    for event in sequence:
        match event:
            case Launch():
                number = next(launches)
                cells = ("launch", str(number), event.name or "", launch_words(event))
                yield Row(cells, number)
            case GraphLaunch():
                where = stream_words(event.stream, event.non_blocking)
                words = f"{size_of(event.launches)}, in {where}{host_words(event.host)}"
                yield Row(("graph", str(next(graphs)), "", words))
                for node in event.graph.nodes:
                    if isinstance(node, Launch):
                        number = next(launches)
                        words = f"{launch_words(node)}{nodes[number].after_words}"
                        yield Row(("node", str(number), node.name or "", words), number)
                    else:
                        number = next(transfers)
                        words = f"{transfer_words(node)}{nodes[-2 - number].after_words}"
                        yield Row((transfer_key(node), str(number), "", words))
            case Copy() | Memset():
                words = f"{transfer_words(event)}{host_words(event.host)}"
                yield Row((transfer_key(event), str(next(transfers)), "", words))
            case Release():
                yield Row(("release", str(event.launch), "", ""))
            case RecordEvent() | WaitEvent():
                kind = "record" if isinstance(event, RecordEvent) else "wait"
                words = f"in stream {event.stream}{host_words(event.host)}"
                yield Row((kind, str(event.event), "", words))
            case Synchronize():
                words = f"{synchronize_words(event)}{host_words(event.host)}"
                yield Row(("synchronize", "", "", words))
            case _:
                assert_never(event)
