"""The nodes of the launches of graphs, and which of them wait for which."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from tbsched.importers.records import Kernel, Transfer

Node: TypeAlias = Kernel | Transfer
Edge: TypeAlias = tuple[int, int]
# A node that waits for another stream starts 0.4 to 1.5 us after the end of what it waits for
# (H100, graphs of PyTorch under torch.profiler).
_SOON_NS = 2000


class Launched(NamedTuple):
    """What a launch of a graph ran.

    Attributes:
        nodes: in the order of all launches of the graph.
        edges: between positions among the nodes, as the times of all launches show them.
        seconds: how long each node ran, at the median of all launches.
    """

    nodes: list[Node]
    edges: list[Edge]
    seconds: list[float]


NOTHING = Launched([], [], [])


def in_order(launches: Mapping[int, Iterable[Node]]) -> dict[int, Launched]:
    """Of each launch of a graph what it ran.

    The nodes of all launches of one graph are in one order. In a stream a node waits for the one
    before it. It waits for a node of another stream if it started soon after that one's end, in
    each launch of the graph, and not soon after the one before it in its own.
    """
    alike: dict[object, dict[int, list[Node]]] = {}
    for number, nodes in launches.items():
        own = _by_number_or_stream(nodes)
        shape = tuple(_shape(node) for node in own)
        alike.setdefault(shape, {})[number] = own
    found: dict[int, Launched] = {}
    for group in alike.values():
        first = next(iter(group.values()))
        places = sorted(range(len(first)), key=lambda place: first[place].start_ns)
        sorted_nodes = {number: [own[place] for place in places] for number, own in group.items()}
        edges = _edges([*sorted_nodes.values()])
        times = [[node.end_ns - node.start_ns for node in own] for own in sorted_nodes.values()]
        seconds = [statistics.median(of_node) / 1e9 for of_node in zip(*times, strict=True)]
        found |= {number: Launched(own, edges, seconds) for number, own in sorted_nodes.items()}
    return found


def known_edges(nodes: Sequence[Node], edges: Iterable[Edge]) -> list[Edge]:
    """Edges between numbers of nodes as edges between positions; without those of other nodes."""
    position = {node.node: number for number, node in enumerate(nodes)}
    pairs = [(position.get(a), position.get(b)) for a, b in edges]
    return list(dict.fromkeys((a, b) for a, b in pairs if a is not None and b is not None))


def _by_number_or_stream(nodes: Iterable[Node]) -> list[Node]:
    own = list(nodes)
    numbers = {node.node for node in own}
    if None in numbers or len(numbers) < len(own):
        return sorted(own, key=lambda node: (node.stream, node.start_ns))
    return sorted(own, key=lambda node: node.node or 0)


def _shape(node: Node) -> object:
    """What is the same of a node in all launches of its graph."""
    if isinstance(node, Kernel):
        return node.node, node.stream, node.name, node.grid, node.block
    return node.node, node.stream, node.kind, node.bytes


def _edges(launches: Sequence[Sequence[Node]]) -> list[Edge]:
    """Of all launches of one graph."""
    chains = _chains(launches[0])
    before = {after: first for first, after in chains}
    across = set.intersection(*(_across(nodes, before) for nodes in launches))
    # As the graph is sorted by one launch's starts, no edge of it leads back.
    return chains + sorted(edge for edge in across if edge[0] < edge[1])


def _chains(nodes: Sequence[Node]) -> list[Edge]:
    """Each node of a stream and the next one, unless the two ran at once."""
    by_stream: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        by_stream.setdefault(node.stream, []).append(number)
    return [
        (first, after)
        for own in by_stream.values()
        for first, after in pairwise(own)
        if nodes[first].end_ns <= nodes[after].start_ns
    ]


def _across(nodes: Sequence[Node], before: Mapping[int, int]) -> set[Edge]:
    """The edges between streams that the times of one launch show."""
    found = set()
    by_end = sorted(range(len(nodes)), key=lambda number: nodes[number].end_ns)
    by_start = sorted(range(len(nodes)), key=lambda number: nodes[number].start_ns)
    ended = 0
    recent: list[int] = []
    for number in by_start:
        start_ns = nodes[number].start_ns
        while ended < len(by_end) and nodes[by_end[ended]].end_ns <= start_ns:
            recent.append(by_end[ended])
            ended += 1
        recent = [other for other in recent if start_ns - nodes[other].end_ns <= _SOON_NS]
        if before.get(number) not in recent:
            of_others = [x for x in recent if nodes[x].stream != nodes[number].stream]
            found |= {(other, number) for other in of_others}
    return found
