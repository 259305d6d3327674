"""The nodes of a launch of a graph, and which of them wait for which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tbsched.importers.records import Kernel, Transfer


def in_order(nodes: Iterable[Kernel | Transfer]) -> list[Kernel | Transfer]:
    """By their numbers in the graph, so that all launches of it agree; else by their starts."""
    own = list(nodes)
    numbers = [node.node for node in own]
    if None in numbers or len(set(numbers)) < len(numbers):
        return sorted(own, key=lambda node: node.start_ns)
    return sorted(own, key=lambda node: node.node or 0)


def known_edges(
    nodes: Sequence[Kernel | Transfer], edges: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Edges between numbers of nodes as edges between positions; without those of other nodes."""
    position = {node.node: number for number, node in enumerate(nodes)}
    pairs = [(position.get(a), position.get(b)) for a, b in edges]
    return list(dict.fromkeys((a, b) for a, b in pairs if a is not None and b is not None))


def edges_of(nodes: Sequence[Kernel | Transfer]) -> list[tuple[int, int]]:
    """Each node waits for those of its stream that had ended when it started.

    Of these it names the ones that no other of them waited for.
    """
    found: list[tuple[int, int]] = []
    by_stream: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        by_stream.setdefault(node.stream, []).append(number)
    for own in by_stream.values():
        by_start = sorted(own, key=lambda number: nodes[number].start_ns)
        by_end = sorted(own, key=lambda number: nodes[number].end_ns)
        ended, latest_start, last = 0, -1, []
        for number in by_start:
            while ended < len(by_end) and nodes[by_end[ended]].end_ns <= nodes[number].start_ns:
                latest_start = max(latest_start, nodes[by_end[ended]].start_ns)
                last.append(by_end[ended])
                ended += 1
            last = [other for other in last if nodes[other].end_ns > latest_start]
            found += [(other, number) for other in last if other != number]
    return found
