"""Difference between a kernel's time in a profile and the run time of its blocks."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.fitting.spans import kernel_times
from tbsched.prediction.predict import predict_launches
from tbsched.program.events.graph import Graph, GraphLaunch
from tbsched.program.events.launch import Launch
from tbsched.program.events.transfers import Transfer
from tbsched.program.program import Program
from tbsched.program.sequence import LEGACY_STREAM, Sequence, Stream, WaitEvent, WaitValue

_MIN_PAIRS = 5  # pairs of kernels that say something
_MAX_GAP_NS = 5000  # between two kernels of which nothing else keeps the second one back
_MIN_OVERHEAD_NS = 100  # a smaller overhead counts as 0


def overhead_ns(program: Program, spec: DeviceSpec) -> float:
    """Returns the ns of a kernel's time in the profile that neither blocks nor model explain.

    Between two kernels that follow each other the model has a certain time, from the last block to
    the first. The profile has less where it counts some of that as part of the kernels. This is
    the median of the differences; 0: it is small, or too few kernels follow each other.

    Args:
        program: with durations of blocks that give the whole times of kernels.
    """
    pairs = np.array(list(_pairs(program.sequence)), np.int64).reshape(-1, 2)
    if len(pairs) < _MIN_PAIRS:
        return 0.0
    first, second = pairs.T
    measured = program.measured["start_ns"][second] - program.measured["end_ns"][first]
    trace = predict_launches(merged(program.sequence, spec), spec, host=program.host)
    start, end = kernel_times(trace)
    predicted = start[second] - end[first]
    near = (np.abs(measured) <= _MAX_GAP_NS) & (np.abs(predicted) <= _MAX_GAP_NS)
    if np.count_nonzero(near) < _MIN_PAIRS:
        return 0.0
    median_ns = float(np.median((predicted - measured)[near]))
    return median_ns if abs(median_ns) >= _MIN_OVERHEAD_NS else 0.0


def _pairs(sequence: Sequence) -> Iterator[tuple[int, int]]:
    """Yields pairs of launches of which the second waits for the first, and for no other work."""
    last: dict[Stream | None, int] = {}  # launches after which their stream had no other work
    number = 0
    for event in sequence:
        if isinstance(event, GraphLaunch):
            yield from _pairs_of_graph(event.graph, number)
        if isinstance(event, Launch):
            if event.stream in last and not event.programmatic:
                yield last[event.stream], number
            if event.stream == LEGACY_STREAM:
                last.clear()
            last.pop(LEGACY_STREAM, None)
            if event.stream is not None:
                last[event.stream] = number
        elif isinstance(event, GraphLaunch | Transfer | WaitEvent | WaitValue):
            last.clear() if event.stream == LEGACY_STREAM else last.pop(event.stream, None)
        number += len(event.launches)


def _pairs_of_graph(graph: Graph, first: int) -> Iterator[tuple[int, int]]:
    """Yields pairs of launches of a graph: the second is the first's only successor, and depends
    on it alone.

    Args:
        graph: the graph.
        first: the number of its first launch.
    """
    before = Counter(b for _, b in graph.edges)
    after = Counter(a for a, _ in graph.edges)
    numbers = itertools.count(first)
    launch = [next(numbers) if isinstance(node, Launch) else None for node in graph.nodes]
    for a, b in graph.edges:
        first_launch, second_launch = launch[a], launch[b]
        if first_launch is not None and second_launch is not None and after[a] == before[b] == 1:
            yield first_launch, second_launch
