"""Launches of a sequence: their events, the graphs that they are nodes of, and their streams."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tbsched.program.arrays import Int64Array
from tbsched.program.events.launch import Launch
from tbsched.program.events.streams import Stream
from tbsched.program.events.transfers import Numbered, Transfer
from tbsched.program.sequence import (
    GraphLaunch,
    Release,
    Sequence,
)
from tbsched.views.words import launch_words, transfer_name


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a graph.

    Attributes:
        graph: the launch of the graph, numbered among those of the sequence from 0 on.
        after: what it waits for by edges, as the sequence numbers it: ``3``, ``copy 0``.
    """

    graph: int
    after: tuple[str, ...]

    @property
    def after_words(self) -> str:
        """``, after 1, copy 0``; empty if it waits for no node."""
        return f", after {', '.join(self.after)}" if self.after else ""


def nodes_of(sequence: Sequence) -> dict[int, Node]:
    """Returns the nodes of all graphs of a sequence, in order.

    By the number of the launch; copy or memset k has the number -2 - k, as in ``trace.waits``.
    """
    nodes_by_number: dict[int, Node] = {}
    launches, transfers, graphs = itertools.count(), itertools.count(), itertools.count()
    for event in sequence:
        if isinstance(event, Transfer):
            next(transfers)
        if not isinstance(event, GraphLaunch):
            for _ in event.launches:
                next(launches)
            continue
        nodes = event.graph.nodes
        numbers = [
            next(launches) if isinstance(node, Launch) else -2 - next(transfers) for node in nodes
        ]
        after: list[list[str]] = [[] for _ in nodes]
        for before, node in sorted(event.graph.edges):
            after[node].append(_name(numbers[before], nodes[before]))
        graph = next(graphs)
        for number, names in zip(numbers, after, strict=True):
            nodes_by_number[number] = Node(graph, tuple(names))
    return nodes_by_number


def _name(launch: int, node: Launch | Numbered) -> str:
    return str(launch) if isinstance(node, Launch) else transfer_name(-2 - launch, node)


def words_of(sequence: Sequence) -> Callable[[int], str]:
    """Returns a function from a launch's number to words; of a node also what it waits for."""
    launches, nodes = sequence.launches, nodes_of(sequence)

    def words(launch: int) -> str:
        words_of_launch = launch_words(launches[launch])
        if launch not in nodes:
            return words_of_launch
        return f"{words_of_launch}, node of graph {nodes[launch].graph}{nodes[launch].after_words}"

    return words


def streams_used(sequence: Sequence) -> list[tuple[int, Stream | None]]:
    """Returns GPU and stream of each launch, then of each transfer; nodes have their graph's."""
    launches: list[tuple[int, Stream | None]] = []
    transfers: list[tuple[int, Stream | None]] = []
    for event in sequence:
        if isinstance(event, Launch | GraphLaunch):
            launches += [(event.gpu, event.stream)] * len(event.launches)
        if isinstance(event, Transfer):
            transfers.append((event.gpu, event.stream))
        elif isinstance(event, GraphLaunch):
            transfers += [(event.gpu, event.stream)] * len(event.graph.transfers)
    return launches + transfers


def launched_and_released(sequence: Sequence) -> tuple[Int64Array, Int64Array]:
    """Returns the position of the event that issues each launch, and of the event that releases it,
    int64 (launches,) each; -1: it is never released.

    Args:
        sequence: a held one. Only timed ones have CUDA events, graphs and copies.
    """
    launched = np.zeros(len(sequence.launches), np.int64)
    released = np.full(len(launched), -1)
    launches = 0
    for event_index, event in enumerate(sequence.events):
        if isinstance(event, Launch):
            launched[launches] = event_index
            launches += 1
        elif isinstance(event, Release):
            released[event.launch] = event_index
        else:
            raise AssertionError("only timed sequences have other events")
    return launched, released
