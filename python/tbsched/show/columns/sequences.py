"""Sequences as a table: a row per event."""

from __future__ import annotations

import itertools
from typing import Any, assert_never

from tbsched.program.events.kinds import KINDS
from tbsched.program.events.transfers import transfer_key
from tbsched.program.sequence import (
    Copy,
    Event,
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
from tbsched.show.words import sms_words

_OF_LAUNCH = (
    "name", "blocks", "threads", "registers", "shared_memory", "local_memory", "carveout",
    "cluster", "priority",
)  # fmt: skip
_AFTER_DURATION = (
    "cooperative", "programmatic", "trigger", "memory_wait", "completion_event", "first_use",
    "delay",
)  # fmt: skip
_KEYS = {kind.event: kind.key for kind in KINDS}


def sequence_columns(sequence: Sequence) -> dict[str, Any]:
    """What the host issued, in order."""
    names = (
        "event", "launch", "cuda_event", "stream", *_OF_LAUNCH, "duration", "partition",
        *_AFTER_DURATION, "non_blocking", "graph", "after", "transfer", "bytes", "kind",
        "pinned", "blocking", "host",
    )  # fmt: skip
    found: dict[str, list[Any]] = {name: [] for name in names}
    nodes = nodes_of(sequence)
    launches, transfers = itertools.count(), itertools.count()
    for event in sequence:
        for row in _rows(event):
            row.setdefault("event", _KEYS[type(event)])
            number = -1
            if "blocks" in row:
                row["launch"] = number = next(launches)
            elif "bytes" in row:
                row["transfer"] = next(transfers)
                number = -2 - row["transfer"]
            if number in nodes:
                row["graph"] = nodes[number].graph
                row["after"] = ", ".join(nodes[number].after)
            for name, column in found.items():
                column.append(row.get(name))
    return dict(found)


def _rows(event: Event) -> list[dict[str, Any]]:
    match event:
        case Launch() | GraphLaunch() | Copy() | Memset():
            stream = None if event.stream is None else str(event.stream)
            own = {"stream": stream, "non_blocking": event.non_blocking, "host": event.host}
            nodes = event.graph.nodes if isinstance(event, GraphLaunch) else (event,)
            return [{**_node_row(node), **own} for node in nodes]
        case Release():
            return [{"launch": event.launch}]
        case RecordEvent() | WaitEvent():
            return [{"cuda_event": event.event, "stream": str(event.stream), "host": event.host}]
        case Synchronize():
            stream = None if event.stream is None else str(event.stream)
            return [{"cuda_event": event.event, "stream": stream, "host": event.host}]
        case _:
            assert_never(event)


def _node_row(node: Launch | Copy | Memset) -> dict[str, Any]:
    if isinstance(node, Launch):
        return _launch_row(node)
    row = {"event": transfer_key(node), "bytes": node.bytes, "duration": node.duration}
    if isinstance(node, Copy):
        row |= {"kind": node.kind, "pinned": node.pinned, "blocking": node.blocking}
    return row


def _launch_row(launch: Launch) -> dict[str, Any]:
    row = {name: getattr(launch, name) for name in (*_OF_LAUNCH, *_AFTER_DURATION)}
    seconds = launch.block_durations() if isinstance(launch.duration, tuple) else None
    mean = getattr(launch.duration, "mean", launch.duration)
    row["duration"] = mean if seconds is None else float(seconds.mean())
    row["partition"] = None if launch.partition is None else sms_words(launch.partition.sms)
    return row
