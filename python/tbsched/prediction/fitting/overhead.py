"""How much longer a kernel of a profile lasts than its blocks."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.events.graph import Graph, GraphLaunch
from tbsched.program.events.launch import Launch
from tbsched.program.program import Program
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Memset,
    Sequence,
    Stream,
    WaitEvent,
)

_FEWEST = 5  # pairs of kernels that say something
_LONGEST_NS = 5000  # between two kernels of which nothing else keeps the second one back
_KERNEL = Launch(1, 32, 16, stream=0, duration=2e-5)
_NODE = Launch(1, 32, 16, duration=2e-5)


class _Pair(NamedTuple):
    """Two launches of which the second one waits for the first, and for nothing else."""

    first: int
    second: int
    of_graph: bool


def overhead_ns(program: Program, spec: DeviceSpec) -> float:
    """Of a kernel's time in the profile, what is neither its blocks' nor the model's.

    Between two kernels that follow each other the model has a certain time, from the last block to
    the first. The profile has less where it counts some of that as part of the kernels. Other
    kernels may keep the second one back. So pairs count beside which nothing ran, or if there are
    few of them the quarter of all pairs that is nearest together. 0: the profile has too few.
    """
    rows = program.measured
    start, end, called = (rows[key] for key in ("start_ns", "end_ns", "call_ns"))
    pairs = list(_pairs(program.sequence))
    if not pairs:
        return 0.0
    first, second, of_graph = (np.array(column) for column in zip(*pairs, strict=True))
    gap = start[second] - end[first]
    # Of launches that were called too late the gap is the host's.
    was_there = (called[second] >= 0) & (called[second] + 2 * spec.launch_latency_ns < end[first])
    near = (gap >= 0) & (gap <= _LONGEST_NS) & (was_there | of_graph)
    begin, over = np.sort(start), np.sort(end)
    running = begin.searchsorted(start[second]) - over.searchsorted(end[first], side="right")
    expected = np.where(of_graph, _gap_ns(spec, True), _gap_ns(spec, False))
    less = (expected - gap)[near].astype(np.float64)
    alone = less[running[near] <= 0]
    if len(alone) >= _FEWEST:
        return float(np.median(alone))
    return float(np.quantile(less, 0.75)) if len(less) >= _FEWEST else 0.0


def _gap_ns(spec: DeviceSpec, of_graph: bool) -> int:
    """From the last block of a kernel to the first of the next one, on an idle GPU."""
    chain = [Graph([_NODE, _NODE], [(0, 1)]).launch(0)] if of_graph else [_KERNEL, _KERNEL]
    one, other = predict(Sequence(chain), spec)
    assert one.end_ns is not None
    assert other.start_ns is not None
    return int(other.start_ns.min() - one.end_ns.max())


def _pairs(sequence: Sequence) -> Iterator[_Pair]:
    last: dict[Stream | None, int] = {}  # launches after which their stream had no other work
    number = 0
    for event in sequence:
        if isinstance(event, GraphLaunch):
            yield from _pairs_of_graph(event.graph, number)
        if isinstance(event, Launch):
            if event.stream in last and not event.programmatic:
                yield _Pair(last[event.stream], number, False)
            if event.stream == LEGACY_STREAM:
                last.clear()
            last.pop(LEGACY_STREAM, None)
            if event.stream is not None:
                last[event.stream] = number
        elif isinstance(event, GraphLaunch | Copy | Memset | WaitEvent):
            last.clear() if event.stream == LEGACY_STREAM else last.pop(event.stream, None)
        number += len(event.launches)


def _pairs_of_graph(graph: Graph, first: int) -> Iterator[_Pair]:
    """Nodes of which one has no other after it, and the other no other before it."""
    before = Counter(b for _, b in graph.edges)
    after = Counter(a for a, _ in graph.edges)
    numbers = itertools.count(first)
    launch = [next(numbers) if isinstance(node, Launch) else None for node in graph.nodes]
    for a, b in graph.edges:
        one, other = launch[a], launch[b]
        if one is not None and other is not None and after[a] == before[b] == 1:
            yield _Pair(one, other, True)
