"""Waits for CUDA events, and edges of graphs, that may not be needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.explain.changes.proposal import Proposal, edited
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Event,
    Graph,
    GraphLaunch,
    Launch,
    RecordEvent,
    Stream,
    WaitEvent,
)


def propose_no_event_wait(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes to drop the last event wait before a launch, or all waits of its kind."""
    sequence, stream = facts.program.sequence, facts.stream_of(launch)
    before = sequence.events[: int(facts.event[launch])]
    waits = [
        (place, event)
        for place, event in enumerate(before)
        if isinstance(event, WaitEvent) and event.stream == stream
    ]
    if not waits or cause.behind < 0:
        return
    if facts.is_collective(cause.behind) or facts.is_collective(launch):
        return  # a collective needs what is before it, and what is after it needs the collective
    behind = facts.stream_of(cause.behind)
    recorded_in = {e.event: e.stream for e in sequence if isinstance(e, RecordEvent)}
    recorded = {event for event, own in recorded_in.items() if own == behind}
    waits = [(place, event) for place, event in waits if event.event in recorded]
    if not waits:
        return
    place, waited = waits[-1]
    alike = [
        k
        for k, event in enumerate(sequence)
        if isinstance(event, WaitEvent)
        and event.stream == stream
        and recorded_in.get(event.event) == behind
    ]
    condition = (
        f"if it does not need {facts.named(cause.behind)}, nor what was before that in its stream"
    )
    choices = [([place], f"the wait of {_stream_name(stream)} for event {waited.event}")]
    if len(alike) > 1:
        what = (
            f"all {len(alike)} waits of {_stream_name(stream)} for events of {_stream_name(behind)}"
        )
        choices.append((alike, what))
    for places, who in choices:
        what = f"without {who}, before {facts.named(launch)}"
        yield edited(facts, what, dict.fromkeys(places), condition)


def _stream_name(stream: Stream | None) -> str:
    """Returns a stream's name in sentences, such as ``stream 7``."""
    return "the default stream" if stream == LEGACY_STREAM else f"stream {stream}"


def propose_no_edge(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes the graph without the edge by which a node waits for another one."""
    place = int(facts.event[launch])
    event = facts.program.sequence[place]
    if not isinstance(event, GraphLaunch) or cause.behind < 0 or event.graph.is_nested:
        return
    if event.graph.memory or any(isinstance(n, RecordEvent | WaitEvent) for n in event.graph.nodes):
        return  # edges keep these in order
    if facts.event[cause.behind] != place:
        return
    first = int(facts.event.searchsorted(place))
    nodes = [k for k, node in enumerate(event.graph.nodes) if isinstance(node, Launch)]
    edge = (nodes[cause.behind - first], nodes[launch - first])
    if edge not in event.graph.edges:
        return
    graph = Graph(event.graph.nodes, [event_ for event_ in event.graph.edges if event_ != edge])
    changed: dict[int, Event | None] = {
        k: replace(event_, graph=graph)
        for k, event_ in enumerate(facts.program.sequence)
        if isinstance(event_, GraphLaunch) and event_.graph == event.graph
    }
    yield edited(
        facts,
        f"without the edge of the graph from {facts.named(cause.behind)} to {facts.named(launch)}",
        changed,
        f"if it does not need {facts.named(cause.behind)}, nor what that waited for",
    )
