"""Sequences and graphs as what JSON can hold."""

from __future__ import annotations

from typing import Any

from tbsched.program.events.graph import Graph
from tbsched.program.sequence import Sequence, events_to_data


def sequence_data(sequence: Sequence) -> dict[str, Any]:
    """The events as trace files hold them."""
    return {"events": events_to_data(sequence)}


def graph_data(graph: Graph) -> dict[str, Any]:
    """The graph as trace files hold it, launched in stream 0."""
    (event,) = events_to_data(Sequence([graph.launch()]))
    found: dict[str, Any] = event["graph"]
    return found
