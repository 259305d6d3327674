"""The nodes of the launches of graphs, and which of them wait for which."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tbsched.importers.records import Kernel, Transfer

Node: TypeAlias = Kernel | Transfer
Edge: TypeAlias = tuple[int, int]
# A node that waits for another stream starts 0.4 to 1.5 us after the end of what it waits for. One
# of the same stream starts at most 0.1 us before it (H100 and H200, graphs of PyTorch under
# torch.profiler).
_SOON_NS = 2000
# The same where a conditional node decides in between (H100 and H200).
_SOON_BEHIND_DECISION_NS = 6000
_EARLY_NS = 500


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


def in_order(
    launches: Mapping[int, Iterable[Node]], with_bodies: Container[int] = ()
) -> dict[int, Launched]:
    """Returns what each launch of a graph ran, by the number of its call.

    Args:
        launches: the nodes of each launch.
        with_bodies: launches that ran bodies of conditional nodes.

    The nodes of all launches of one graph are in one order. In a stream a node waits for the one
    before it. It waits for a node of another stream if it started soon after that one's end, in
    each launch of the graph, and not soon after the one before it in its own. As CUDA captures no
    graph of which a stream does not join the first one, the last node of each other stream is
    waited for by the next one of the first stream.
    """
    launches_by_shape: dict[object, dict[int, list[Node]]] = {}
    for launch, nodes in launches.items():
        ordered_nodes = _by_number_or_stream(nodes)
        shape = tuple(_shape(node) for node in ordered_nodes)
        launches_by_shape.setdefault(shape, {})[launch] = ordered_nodes
    launched: dict[int, Launched] = {}
    for group in launches_by_shape.values():
        first = next(iter(group.values()))
        order = sorted(range(len(first)), key=lambda index: first[index].start_ns)
        sorted_nodes = {launch: [ran[index] for index in order] for launch, ran in group.items()}
        decides = any(launch in with_bodies for launch in group)
        soon_ns = _SOON_BEHIND_DECISION_NS if decides else _SOON_NS
        edges = _edges([*sorted_nodes.values()], soon_ns)
        times = [[node.end_ns - node.start_ns for node in ran] for ran in sorted_nodes.values()]
        seconds = [statistics.median(of_node) / 1e9 for of_node in zip(*times, strict=True)]
        launched |= {launch: Launched(ran, edges, seconds) for launch, ran in sorted_nodes.items()}
    return launched


def known_edges(nodes: Sequence[Node], edges: Iterable[Edge]) -> list[Edge]:
    """Returns edges between numbers of nodes as edges between their positions, where both ran."""
    position = {node.node: index for index, node in enumerate(nodes)}
    pairs = [(position.get(a), position.get(b)) for a, b in edges]
    return list(dict.fromkeys((a, b) for a, b in pairs if a is not None and b is not None))


def _by_number_or_stream(nodes: Iterable[Node]) -> list[Node]:
    """Returns nodes by their numbers; without unique numbers by stream and start."""
    unsorted = list(nodes)
    numbers = {node.node for node in unsorted}
    if None in numbers or len(numbers) < len(unsorted):
        return sorted(unsorted, key=lambda node: (node.stream, node.start_ns))
    return sorted(unsorted, key=lambda node: node.node or 0)


def _shape(node: Node) -> object:
    """Returns the properties of a node that are the same in all launches of its graph."""
    if isinstance(node, Kernel):
        return node.node, node.stream, node.name, node.grid, node.block
    return node.node, node.stream, node.kind, node.bytes


def _edges(launches: Sequence[Sequence[Node]], soon_ns: int) -> list[Edge]:
    """Returns the edges that all launches of a graph have in common."""
    chains = _chains(launches[0])
    before = {after: first for first, after in chains}
    across = set.intersection(*(_across(nodes, before, soon_ns) for nodes in launches))
    across |= _joins(launches)
    # As the graph is sorted by one launch's starts, no edge of it leads back.
    return chains + sorted(edge for edge in across if edge[0] < edge[1])


def _joins(launches: Sequence[Sequence[Node]]) -> set[Edge]:
    """Returns edges from the last node of each stream to the next node of the first stream."""
    streams = [node.stream for node in launches[0]]
    edges = set()
    for last in {stream: index for index, stream in enumerate(streams)}.values():
        later = (
            index
            for index in range(last + 1, len(streams))
            if streams[index] == streams[0] != streams[last]
            and all(nodes[last].end_ns <= nodes[index].start_ns + _EARLY_NS for nodes in launches)
        )
        edges |= {(last, index) for index in itertools.islice(later, 1)}
    return edges


def _chains(nodes: Sequence[Node]) -> list[Edge]:
    """Returns an edge from each node of a stream to the next, unless they ran at once."""
    by_stream: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        by_stream.setdefault(node.stream, []).append(index)
    return [
        (first, after)
        for indices in by_stream.values()
        for first, after in itertools.pairwise(indices)
        if nodes[first].end_ns <= nodes[after].start_ns + _EARLY_NS
    ]


def _across(nodes: Sequence[Node], before: Mapping[int, int], soon_ns: int) -> set[Edge]:
    """Returns the edges between streams that the times of one launch show."""
    edges = set()
    by_end = sorted(range(len(nodes)), key=lambda index: nodes[index].end_ns)
    by_start = sorted(range(len(nodes)), key=lambda index: nodes[index].start_ns)
    ended = 0
    recent: list[int] = []
    for index in by_start:
        start_ns = nodes[index].start_ns
        while ended < len(by_end) and nodes[by_end[ended]].end_ns <= start_ns + _EARLY_NS:
            recent.append(by_end[ended])
            ended += 1
        recent = [earlier for earlier in recent if start_ns - nodes[earlier].end_ns <= soon_ns]
        if before.get(index) not in recent:
            others = [x for x in recent if nodes[x].stream != nodes[index].stream]
            edges |= {(earlier, index) for earlier in others}
    return edges


def edges_through(
    nodes: Iterable[int], edges: Iterable[tuple[int, int]], originals: Mapping[int, int]
) -> tuple[tuple[int, int], ...]:
    """Returns which nodes of an executable graph wait for which, directly or through others.

    Args:
        nodes: the ones that are wanted.
        edges: of nodes of any graph: the second waits for the first.
        originals: of the nodes of a graph those of the graph that it was made from.
    """
    executable_nodes = set(nodes)
    # The node of the executable graph, by itself and by the nodes that it was made from.
    wanted = {node: node for node in executable_nodes}
    for node in executable_nodes:
        origin, seen = node, {node}
        while (origin := originals.get(origin, node)) not in seen:
            seen.add(origin)
            wanted.setdefault(origin, node)
    after: dict[int, list[int]] = {}
    for first, second in edges:
        after.setdefault(first, []).append(second)
    pairs: dict[tuple[int, int], None] = {}
    for start, node in wanted.items():
        ahead, passed = list(after.get(start, ())), {start}
        while ahead:
            ahead_node = ahead.pop()
            if ahead_node in passed:
                continue
            passed.add(ahead_node)
            if ahead_node in wanted:
                pairs[node, wanted[ahead_node]] = None
            else:
                ahead += after.get(ahead_node, ())
    return tuple(sorted(pair for pair in pairs if pair[0] != pair[1]))
