"""Launches that follow each other, as a CUDA graph that is launched at once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tbsched.advice.explain.changes.host_windows import windows
from tbsched.advice.explain.changes.proposal import MOST_PAUSE, Proposal
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.counting import counted
from tbsched.program.activity import CALL, UNKNOWN
from tbsched.program.sequence import Copy, Event, Graph, Launch, Memset, Sequence

# Calls that ask and set, and those of events that nobody waits for.
_HARMLESS = re.compile(
    r"(cuda|cu)(Get|PeekAtLastError|Occupancy|FuncGet|FuncSet|DeviceGet|CtxGet|StreamGet|StreamIsCapturing|"
    r"EventRecord|EventQuery|EventCreate|EventDestroy|KernelGet|TensorMapEncode|PointerGet|"
    r"Launch|.*LaunchKernel)"
)
_FEWEST = 4  # launches of a graph


def as_graphs(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes each run of a thread's launches to a stream as one graph."""
    if not facts.spec.graph_latency_ns:
        return  # nobody has measured how long the launch of a graph takes there
    events: list[Event] = []
    host: list[float] = []
    graphs = nodes = 0
    for own in _runs(facts):
        given = [facts.program.sequence[place] for place in own]
        launches = sum(isinstance(event, Launch) for event in given)
        if launches < _FEWEST:
            events += given
            host += [facts.program.host[place] for place in own]
            continue
        first = given[0]
        assert isinstance(first, Launch | Copy | Memset)
        assert first.stream is not None  # work of a stream
        graph = Graph([_node(event) for event in given], itertools.pairwise(range(len(given))))
        events.append(graph.launch(first.stream, non_blocking=first.non_blocking, host=first.host))
        host.append(facts.program.host[own[0]])
        graphs, nodes = graphs + 1, nodes + len(given)
    if graphs:
        yield Proposal(
            f"CUDA graphs: {counted(nodes, 'launch', 'launches')} in {counted(graphs, 'graph')}",
            Sequence(events),
            tuple(host),
            "if they are the same each time, and the host does nothing else between them",
        )


def _runs(facts: Facts) -> Iterator[list[int]]:
    """Yields the places of events in their order, those together that may be one graph."""
    run: list[int] = []
    broken = _called_between(facts)
    for place, event in enumerate(facts.program.sequence):
        follows = run and _follows(facts, run, event, facts.program.host[place])
        if run and (place in broken or not follows):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _called_between(facts: Facts) -> set[int]:
    """Returns the events before which the thread made a CUDA call that no graph can hold."""
    activity, calls = facts.account.activity, facts.calls
    host = activity.host
    is_other = host["kind"] == CALL
    is_other[calls[calls != UNKNOWN]] = False
    harmless = np.array([_HARMLESS.match(name) is not None for name in activity.names], np.bool_)
    is_other &= ~harmless[host["name"]] & (facts.account.times.is_outermost)
    found: set[int] = set()
    ends = {
        thread: np.sort(host["end_ns"][is_other & (host["thread"] == thread)])
        for thread in facts.account.times.lines
    }
    every, threads = windows(facts)
    for thread, others in ends.items():
        own = every.some(threads == thread)
        first = np.searchsorted(others, own.begin, side="right")
        last = np.searchsorted(others, own.end, side="right")
        found.update(own.of[last > first].tolist())
    return found | set(np.flatnonzero(calls == UNKNOWN).tolist())


def _follows(facts: Facts, run: list[int], event: Event, pause: float) -> bool:
    """Returns whether an event can be the next node of a run that becomes a graph."""
    last = facts.program.sequence[run[-1]]
    return (
        _may_be_node(event)
        and _may_be_node(last)
        and pause <= MOST_PAUSE
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
    """Returns work of a stream as a node of a graph."""
    assert isinstance(event, Launch | Copy | Memset)
    if isinstance(event, Launch):
        return replace(event, stream=None, non_blocking=False, host=0, first_use=False, delay=None)
    made = replace(event, stream=None, non_blocking=False, host=0)
    return replace(made, pinned=True, blocking=False) if isinstance(made, Copy) else made
