"""Sequences and graphs: a row per event, and per node of a graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, assert_never, get_args

from tbsched.counting import counted
from tbsched.program.events.graph import Graph, Node
from tbsched.program.events.kinds import KINDS
from tbsched.program.events.transfers import Transfer, transfer_key
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
    Sequence,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
    events_to_data,
)
from tbsched.views.cards import card, table_html
from tbsched.views.layout.colours import colours_of
from tbsched.views.layout.graphs import nodes_of
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import (
    host_call_words,
    host_words,
    launch_words,
    more_of,
    size_of,
    sms_words,
    stream_words,
    synchronize_words,
    transfer_words,
    value_words,
)

ROWS_SHOWN = 50
_OF_LAUNCH = (
    "name", "blocks", "threads", "registers", "shared_memory", "local_memory", "carveout",
    "cluster", "priority",
)  # fmt: skip
_AFTER_DURATION = (
    "cooperative", "programmatic", "trigger", "memory_wait", "completion_event", "first_use",
    "delay",
)  # fmt: skip
_KEYS = {kind.event: kind.key for kind in KINDS}
_TRANSFERS = {_KEYS[kind] for kind in get_args(Transfer)}


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
    """Returns how much is in a sequence, in words."""
    other_events = sum(not event.launches for event in sequence)
    return size_of(sequence.launches) + (
        f", {counted(other_events, 'other event')}" if other_events else ""
    )


def sequence_text(sequence: Sequence) -> Lines:
    """A row per event, and per node of a graph."""
    return [sequence_short(sequence), rows_table([*rows_of(sequence)], ROWS_SHOWN)]


def graph_short(graph: Graph) -> str:
    """How much is in it."""
    return f"{counted(len(graph.nodes), 'node')}, {counted(len(graph.edges), 'edge')}"


def graph_text(graph: Graph) -> Lines:
    """A row per node."""
    return [graph_short(graph), rows_table(nodes_as_rows(graph), ROWS_SHOWN)]


def nodes_as_rows(graph: Graph) -> list[Row]:
    """The nodes of a graph."""
    return [*rows_of(Sequence([graph.launch()]))][1:]


def rows_table(rows: list[Row], max_rows: int | None = None) -> Table:
    """Returns the rows as a table, or only so many of them."""
    headings = ("event", "number", "name", "blocks x threads")
    shown = [row.cells for row in rows[:max_rows]]
    return table_of(headings, shown, (0, 2, 3), more_of(len(rows), len(shown), "row"))


def rows_of(sequence: Sequence) -> Iterator[Row]:
    """Yields what the host issued, in order; the nodes of a graph come after it."""
    nodes = nodes_of(sequence)
    launches, transfers, graphs = itertools.count(), itertools.count(), itertools.count()
    for event in sequence:
        match event:
            case Launch():
                index = next(launches)
                cells = ("launch", str(index), event.name or "", launch_words(event))
                yield Row(cells, index)
            case GraphLaunch():
                stream = stream_words(event.stream, event.non_blocking)
                words = f"{size_of(event.launches)}, in {stream}{host_words(event.host)}"
                yield Row(("graph", str(next(graphs)), "", words))
                for node in event.graph.nodes:
                    if isinstance(node, Launch):
                        index = next(launches)
                        words = f"{launch_words(node)}{nodes[index].after_words}"
                        yield Row(("node", str(index), node.name or "", words), index)
                    else:
                        index = next(transfers)
                        words = f"{transfer_words(node)}{nodes[-2 - index].after_words}"
                        yield Row((transfer_key(node), str(index), "", words))
            case Copy() | Memset() | HostFunction():
                words = f"{transfer_words(event)}{host_words(event.host)}"
                yield Row((transfer_key(event), str(next(transfers)), "", words))
            case Release():
                yield Row(("release", str(event.launch), "", ""))
            case RecordEvent() | WaitEvent():
                kind = "record" if isinstance(event, RecordEvent) else "wait"
                timing = isinstance(event, RecordEvent) and event.timing
                how = ", with timing" if timing else ""
                words = f"in stream {event.stream}{how}{host_words(event.host)}"
                yield Row((kind, str(event.event), "", words))
            case Synchronize():
                words = f"{synchronize_words(event)}{host_words(event.host)}"
                yield Row(("synchronize", "", "", words))
            case HostCall():
                words = f"{host_call_words(event)}{host_words(event.host)}"
                yield Row(("host_call", "", event.name, words))
            case WriteValue() | WaitValue():
                words = f"{value_words(event)} in stream {event.stream}{host_words(event.host)}"
                yield Row((_KEYS[type(event)], "", "", words))
            case _:
                assert_never(event)


def sequence_html(sequence: Sequence) -> str:
    """A row per event, and per node of a graph."""
    return _card(sequence_short(sequence), [*rows_of(sequence)], sequence.launches)


def graph_html(graph: Graph) -> str:
    """A row per node."""
    return _card(graph_short(graph), nodes_as_rows(graph), graph.launch().launches)


def _card(title: str, rows: list[Row], launches: tuple[Launch, ...]) -> str:
    colours = colours_of(launches)
    marks = ["transparent" if row.launch is None else colours[row.launch] for row in rows]
    return card(title, table_html(rows_table(rows, ROWS_SHOWN), marks=marks))


def sequence_columns(sequence: Sequence) -> dict[str, Any]:
    """Returns columns: what the host issued, in order."""
    names = (
        "event", "launch", "cuda_event", "stream", *_OF_LAUNCH, "duration", "partition",
        *_AFTER_DURATION, "non_blocking", "graph", "after", "transfer", "bytes", "kind",
        "pinned", "blocking", "host", "waits", "value",
    )  # fmt: skip
    columns: dict[str, list[Any]] = {name: [] for name in names}
    nodes = nodes_of(sequence)
    launches, transfers = itertools.count(), itertools.count()
    for event in sequence:
        for row in _event_rows(event):
            row.setdefault("event", _KEYS[type(event)])
            index = -1
            if "blocks" in row:
                row["launch"] = index = next(launches)
            elif row["event"] in _TRANSFERS or isinstance(event, GraphLaunch):
                row["transfer"] = next(transfers)
                index = -2 - row["transfer"]
            if index in nodes:
                row["graph"] = nodes[index].graph
                row["after"] = ", ".join(nodes[index].after)
            for name, column in columns.items():
                column.append(row.get(name))
    return dict(columns)


def _event_rows(event: Event) -> list[dict[str, Any]]:
    """Returns the rows of an event: one, or one per node of a graph."""
    match event:
        case Launch() | GraphLaunch() | Copy() | Memset() | HostFunction():
            stream = None if event.stream is None else str(event.stream)
            stream_fields = {
                "stream": stream,
                "non_blocking": event.non_blocking,
                "host": event.host,
            }
            nodes = event.graph.nodes if isinstance(event, GraphLaunch) else (event,)
            return [{**_node_row(node), **stream_fields} for node in nodes]
        case Release():
            return [{"launch": event.launch}]
        case RecordEvent() | WaitEvent():
            return [{"cuda_event": event.event, "stream": str(event.stream), "host": event.host}]
        case Synchronize():
            stream = None if event.stream is None else str(event.stream)
            return [{"cuda_event": event.event, "stream": stream, "host": event.host}]
        case HostCall() | WriteValue() | WaitValue():
            stream = None if event.stream is None else str(event.stream)
            return [{**asdict(event), "stream": stream}]
        case _:
            assert_never(event)


def _node_row(node: Node) -> dict[str, Any]:
    """Returns the row of a node of a graph."""
    if isinstance(node, Launch):
        return _launch_row(node)
    if isinstance(node, RecordEvent | WaitEvent):
        return {"event": transfer_key(node), "cuda_event": node.event}
    if isinstance(node, HostFunction):
        return {"event": transfer_key(node), "name": node.name, "duration": node.duration}
    row = {"event": transfer_key(node), "bytes": node.bytes, "duration": node.duration}
    if isinstance(node, Copy):
        row |= {"kind": node.kind, "pinned": node.pinned, "blocking": node.blocking}
    return row


def _launch_row(launch: Launch) -> dict[str, Any]:
    """Returns the row of a launch."""
    row = {name: getattr(launch, name) for name in (*_OF_LAUNCH, *_AFTER_DURATION)}
    seconds = launch.block_durations() if isinstance(launch.duration, tuple) else None
    mean = getattr(launch.duration, "mean", launch.duration)
    row["duration"] = mean if seconds is None else float(seconds.mean())
    row["partition"] = None if launch.partition is None else sms_words(launch.partition.sms)
    return row


def sequence_data(sequence: Sequence) -> dict[str, Any]:
    """The events as trace files hold them."""
    return {"events": events_to_data(sequence)}


def graph_data(graph: Graph) -> dict[str, Any]:
    """Returns a graph as trace files hold it, launched in stream 0."""
    (event,) = events_to_data(Sequence([graph.launch()]))
    data: dict[str, Any] = event["graph"]
    return data
