"""Launches that follow each other, as a CUDA graph that is launched at once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tbsched.advice.explain.call_windows import ASKS, windows_before_calls
from tbsched.advice.explain.changes.proposal import MAX_PAUSE_SECONDS, Proposal
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.counting import counted
from tbsched.program.activity import CALL, UNKNOWN
from tbsched.program.sequence import Copy, Event, Graph, Launch, Memset, Sequence

# Calls that ask and set, and those of events that nobody waits for.
_HARMLESS = re.compile(
    rf"{ASKS.pattern}|(cuda|cu)(FuncSet|EventRecord|EventCreate|EventDestroy|TensorMapEncode|"
    r"Launch|.*LaunchKernel)"
)
_MIN_LAUNCHES = 4  # launches of a graph


def propose_graphs(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes each run of a thread's launches into one stream as one CUDA graph."""
    if not facts.spec.graph_latency_ns:
        return  # nobody has measured how long the launch of a graph takes there
    events: list[Event] = []
    host: list[float] = []
    graphs = nodes = 0
    for places in _runs(facts):
        run = [facts.program.sequence[place] for place in places]
        launches = sum(isinstance(event, Launch) for event in run)
        if launches < _MIN_LAUNCHES:
            events += run
            host += [facts.program.host[place] for place in places]
            continue
        first = run[0]
        assert isinstance(first, Launch | Copy | Memset)
        assert first.stream is not None  # work of a stream
        graph = Graph([_node(event) for event in run], itertools.pairwise(range(len(run))))
        events.append(graph.launch(first.stream, non_blocking=first.non_blocking, host=first.host))
        host.append(facts.program.host[places[0]])
        graphs, nodes = graphs + 1, nodes + len(run)
    if graphs:
        yield Proposal(
            f"CUDA graphs: {counted(nodes, 'launch', 'launches')} in {counted(graphs, 'graph')}",
            lambda: (Sequence(events), tuple(host)),
            "if they are the same each time, and the host does nothing else between them",
        )


def _runs(facts: Facts) -> Iterator[list[int]]:
    """Yields the places of all events in order, in runs that may become one graph each."""
    run: list[int] = []
    broken = _behind_other_calls(facts)
    for place, event in enumerate(facts.program.sequence):
        follows = run and _may_follow(facts, run, event, facts.program.host[place])
        if run and (place in broken or not follows):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _behind_other_calls(facts: Facts) -> set[int]:
    """Returns the events before which their thread made a CUDA call that no graph can hold."""
    activity, calls = facts.account.activity, facts.calls
    host = activity.host
    is_other = host["kind"] == CALL
    is_other[calls[calls != UNKNOWN]] = False
    harmless = np.array([_HARMLESS.match(name) is not None for name in activity.names], np.bool_)
    is_other &= ~harmless[host["name"]] & (facts.account.times.is_outermost)
    places: set[int] = set()
    ends = {
        thread: np.sort(host["end_ns"][is_other & (host["thread"] == thread)])
        for thread in facts.account.times.lines
    }
    all_windows, threads = windows_before_calls(facts.program, activity)
    for thread, others in ends.items():
        before = all_windows.select(threads == thread)
        first = np.searchsorted(others, before.begin, side="right")
        last = np.searchsorted(others, before.end, side="right")
        places.update(before.owner[last > first].tolist())
    return places | set(np.flatnonzero(calls == UNKNOWN).tolist())


def _may_follow(facts: Facts, run: list[int], event: Event, pause: float) -> bool:
    """Returns whether an event can be the next node of a run that becomes a graph."""
    last = facts.program.sequence[run[-1]]
    return (
        _may_be_node(event)
        and _may_be_node(last)
        and pause <= MAX_PAUSE_SECONDS
        and (event.stream, event.host) == (last.stream, last.host)  # type: ignore[union-attr]
    )


def _may_be_node(event: Event) -> bool:
    """Returns whether an event can be a node of a graph."""
    if isinstance(event, Launch):
        return (
            not event.first_use
            and not event.programmatic
            and event.trigger is None
            and event.memory_wait is None
        )
    return isinstance(event, Memset) or (isinstance(event, Copy) and event.kind == "d2d")


def _node(event: Event) -> Launch | Copy | Memset:
    """Returns work of a stream as a node of a graph, without stream and host."""
    assert isinstance(event, Launch | Copy | Memset)
    if isinstance(event, Launch):
        return replace(event, stream=None, non_blocking=False, host=0, first_use=False, delay=None)
    node = replace(event, stream=None, non_blocking=False, host=0)
    return replace(node, pinned=True, blocking=False) if isinstance(node, Copy) else node
