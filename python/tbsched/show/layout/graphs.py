"""Which launches are nodes of graphs, and in which stream each launch is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tbsched.program.events.launch import Launch
from tbsched.program.events.streams import Stream
from tbsched.program.sequence import GraphLaunch, Sequence
from tbsched.show.words import launch_words


@dataclass(frozen=True, slots=True)
class Node:
    """A launch that is a node of a graph.

    Attributes:
        graph: the launch of the graph, numbered among those of the sequence from 0 on.
        after: the launches that it waits for by edges, as the sequence numbers them.
    """

    graph: int
    after: tuple[int, ...]

    @property
    def after_words(self) -> str:
        """``, after 1, 2``; empty if it waits for no node."""
        return f", after {', '.join(map(str, self.after))}" if self.after else ""


def nodes_of(sequence: Sequence) -> dict[int, Node]:
    """The nodes of all graphs of a sequence, by the number of the launch."""
    found: dict[int, Node] = {}
    first, graphs = 0, 0
    for event in sequence:
        if isinstance(event, GraphLaunch):
            after: list[list[int]] = [[] for _ in event.launches]
            for before, node in event.graph.edges:
                after[node].append(first + before)
            for number, numbers in enumerate(after):
                found[first + number] = Node(graphs, tuple(sorted(numbers)))
            graphs += 1
        first += len(event.launches)
    return found


def words_of(sequence: Sequence) -> Callable[[int], str]:
    """What says in words what a launch is, by its number; of a node what it waits for, too."""
    launches, nodes = sequence.launches, nodes_of(sequence)

    def words(number: int) -> str:
        own = launch_words(launches[number])
        if number not in nodes:
            return own
        return f"{own}, node of graph {nodes[number].graph}{nodes[number].after_words}"

    return words


def streams_used(sequence: Sequence) -> list[Stream | None]:
    """The stream of each launch; nodes are in that of their graph."""
    found: list[Stream | None] = []
    for event in sequence:
        if isinstance(event, Launch | GraphLaunch):
            found += [event.stream] * len(event.launches)
    return found
