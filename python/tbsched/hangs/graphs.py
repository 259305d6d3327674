"""Graphs of a capture: their nodes, and which of them wait for which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tbsched.errors import shown
from tbsched.importers.assembly.graphs import edges_through
from tbsched.importers.reading.capture_lines import Line, integer, optional, text
from tbsched.program.reachable import reachable

# What a node of a kind is as an operation. The others do nothing that takes time by itself.
_WORK = {
    "kernel": "launch", "copy": "copy", "memset": "memset", "host_function": "host_function",
    "wait": "wait", "record": "record", "wait_semaphore": "wait_value", "values": "wait_value",
    "conditional": "graph", "unknown": "graph",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """A node that does something, or stands for others: ``what`` as of an operation, or None."""

    what: str | None
    line: Line


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """A graph as it was instantiated.

    Attributes:
        nodes: all of them; child graphs and bodies of conditional nodes are taken apart.
        predecessors: of each node the numbers of those that it waits for.
        is_whole: whether all nodes and edges are known.
    """

    nodes: tuple[Node, ...]
    predecessors: tuple[frozenset[int], ...]
    is_whole: bool
    _waited_for: dict[int, set[int]] = field(default_factory=dict, repr=False, compare=False)

    def waits_for(self, node: int, other: int) -> bool:
        """Returns whether a node waits for another one, directly or through others."""
        if node not in self._waited_for:
            before = self.predecessors
            self._waited_for[node] = reachable(before[node], before.__getitem__)
        return other in self._waited_for[node]

    def edges(self, kept: Iterable[int]) -> list[tuple[int, int]]:
        """Returns the edges between kept nodes, direct or through others, by places in ``kept``."""
        place = {node: at for at, node in enumerate(kept)}
        every = ((first, node) for node, firsts in enumerate(self.predecessors) for first in firsts)
        return sorted((place[a], place[b]) for a, b in edges_through(place, every, {}))


def graph_of(line: Line, lines: Mapping[int, Line]) -> CapturedGraph:
    """Returns a graph from its line in the capture and the lines of its nodes. Raises TypeError or
    ValueError: a number that cannot be."""
    count = integer(line, "nodes")
    nodes = [_node(lines[number]) if number in lines else _NONE for number in range(count)]
    predecessors: list[set[int]] = [set() for _ in nodes]
    inside: dict[int, list[int]] = {}
    for number, node_line in lines.items():
        parent = optional(node_line, "parent")
        if parent is not None and number < count and parent < number:
            inside.setdefault(parent, []).append(number)
    for key in ("edges", "programmatic_edges"):
        ends = line.get(key, [])
        if not isinstance(ends, list) or len(ends) % 2 > 0:
            raise ValueError(f"{key}: pairs of nodes are needed, got {shown(ends)}")
        for first, second in zip(ends[::2], ends[1::2], strict=True):
            if not (type(first) is type(second) is int and min(first, second) >= 0):
                raise ValueError(f"{key}: numbers of nodes are needed, got {shown(ends)}")
            if max(first, second) < count:
                predecessors[second].add(first)
    # A node with others inside ends when they have: it waits for them, and they for what it does.
    for parent in sorted(inside):
        for number in inside[parent]:
            predecessors[number] |= predecessors[parent]
        predecessors[parent] = {*inside[parent]}
    is_whole = len(lines) >= count and line.get("whole") is not False
    return CapturedGraph(tuple(nodes), tuple(map(frozenset, predecessors)), is_whole)


def _node(line: Line) -> Node:
    """Returns the node that a line of a capture describes."""
    kind = text(line, "kind")
    if line.get("known") is False and kind != "conditional":
        return Node("graph", line)
    if kind == "values" and line.get("waits") is not True:
        kind = "empty"
    return Node(_WORK.get(kind), line)


_NONE = Node("graph", {})
