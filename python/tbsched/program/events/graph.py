"""CUDA graphs: work that waits for each other, issued at once."""

from __future__ import annotations

import graphlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tbsched.errors import shown
from tbsched.program.checks import flag, instance, integer, items, known_fields
from tbsched.program.events.host_function import HostFunction, host_function_from_data
from tbsched.program.events.launch import (
    MAX_LAUNCHES,
    Launch,
    launch_from_data,
    launch_to_data,
)
from tbsched.program.events.streams import (
    LEGACY_STREAM,
    Stream,
    checked_gpu,
    checked_host,
    checked_stream,
)
from tbsched.program.events.transfers import (
    Copy,
    Memset,
    Transfer,
    copy_from_data,
    memset_from_data,
    transfer_key,
    transfer_to_data,
)
from tbsched.program.written import given_fields
from tbsched.shown import Shown

Node: TypeAlias = Launch | Copy | Memset | HostFunction

# What work in a stream can have, and a node of a graph cannot.
_NOT_IN_A_NODE = {
    "stream", "non_blocking", "programmatic", "trigger", "memory_wait", "completion_event",
    "first_use", "delay", "host", "pinned", "blocking", "gpu", "peer",
}  # fmt: skip
_NODES: dict[str, Callable[[str, Any], Node]] = {
    "launch": launch_from_data,
    "copy": copy_from_data,
    "memset": memset_from_data,
    "host_function": host_function_from_data,
}


@dataclass(frozen=True, slots=True)
class Graph(Shown):
    """A CUDA graph: launches, copies, memsets and host functions, and which wait for which.

    Graphs are compared by value. To launch equal graphs is to launch one graph again.

    Args:
        nodes: each a :class:`Launch`, :class:`Copy`, :class:`Memset` or :class:`HostFunction`. A
            launch has a duration and no stream. At least one node is a launch.
        edges: pairs of numbers of nodes: the second node waits for the first.

    Attributes:
        nodes: what was given, a tuple.
        edges: the pairs, a tuple of tuples.

    Raises:
        TypeError, ValueError: a node that is none of these; no launch; an edge to or from a node
            that is not there, or that is given twice; edges in a circle.

    Example:
        >>> kernel = tb.Launch(132, 256, 32, duration=1e-5)
        >>> graph = tb.Graph([kernel, kernel, kernel], edges=[(0, 2), (1, 2)])
        >>> tb.Sequence([graph.launch(stream=0), graph.launch(stream=0)]).launches == 6 * (kernel,)
        True
    """

    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int], ...]

    def __init__(self, nodes: Iterable[Node], edges: Iterable[tuple[int, int]] = ()) -> None:
        given = tuple(
            _checked_node(f"Graph.nodes[{number}]", node)
            for number, node in enumerate(items("Graph", "nodes", nodes))
        )
        object.__setattr__(self, "nodes", given)
        if not 1 <= len(given) <= MAX_LAUNCHES:
            raise ValueError(f"Graph.nodes: {len(given)} nodes are outside 1..{MAX_LAUNCHES}")
        if not self.launches:
            raise ValueError("Graph.nodes: no Launch among them; at least one is needed")
        object.__setattr__(self, "edges", _checked_edges(edges, len(given)))

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The nodes that are launches, in order."""
        return tuple(node for node in self.nodes if isinstance(node, Launch))

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """The nodes that are copies, memsets and host functions, in order."""
        return tuple(node for node in self.nodes if not isinstance(node, Launch))

    def launch(
        self, stream: Stream = 0, *, non_blocking: bool = False, host: int = 0, gpu: int = 0
    ) -> GraphLaunch:
        """Launches the graph in a stream, an event for a :class:`Sequence`.

        Args:
            stream: a number or :data:`LEGACY_STREAM`.
            non_blocking: whether the stream is a non-blocking one, as of :class:`Launch`.
            host: the host thread that calls, 0 to 1023.
            gpu: the index of the GPU that runs all its nodes.

        Raises:
            TypeError, ValueError: as :class:`GraphLaunch`.

        Example:
            >>> graph = tb.Graph([tb.Launch(132, 256, 32, duration=1e-5)])
            >>> graph.launch(stream=3).stream
            3
        """
        return GraphLaunch(self, stream, non_blocking=non_blocking, host=host, gpu=gpu)

    def __repr__(self) -> str:
        edges = f", edges={[*self.edges]!r}" if self.edges else ""
        return f"Graph({[*self.nodes]!r}{edges})"


def _checked_node(where: str, node: Node) -> Node:
    if not isinstance(node, Launch | Copy | Memset | HostFunction):
        raise TypeError(
            f"{where}: a Launch, Copy, Memset or HostFunction is needed, got {shown(node)}"
        )
    if isinstance(node, Launch) and node.duration is None:
        raise ValueError(f"{where}.duration: None; each node of a graph needs one")
    for name, value in given_fields(node).items():
        if name in _NOT_IN_A_NODE:
            has = "pinned memory" if name == "pinned" else "none"
            raise ValueError(f"{where}.{name}: {value!r}, but a node of a graph has {has}")
    return node


def _checked_edges(edges: Iterable[tuple[int, int]], nodes: int) -> tuple[tuple[int, int], ...]:
    found: dict[tuple[int, int], None] = {}
    order: graphlib.TopologicalSorter[int] = graphlib.TopologicalSorter()
    for number, edge in enumerate(items("Graph", "edges", edges)):
        field = f"edges[{number}]"
        ends = tuple(items("Graph", field, edge))
        if len(ends) != 2:
            raise ValueError(f"Graph.{field}: two numbers of nodes are needed, got {shown(edge)}")
        before, after = (integer("Graph", field, end, 0, nodes - 1) for end in ends)
        if (before, after) in found:
            raise ValueError(f"Graph.{field}: {(before, after)} is among the edges already")
        found[before, after] = None
        order.add(after, before)
    try:
        order.prepare()
    except graphlib.CycleError as error:
        circle = " -> ".join(map(str, error.args[1]))
        raise ValueError(f"Graph.edges: {shown(circle)} is a circle of nodes") from None
    return tuple(found)


@dataclass(frozen=True, slots=True)
class GraphLaunch:
    """``cudaGraphLaunch``: all nodes of a graph, issued at once; :meth:`Graph.launch` makes it.

    Its launches are launches of the sequence, numbered in the order of the graph's nodes. Other
    nodes have no such number.

    Attributes:
        graph: the :class:`Graph`.
        stream: the stream that it is launched in, a number or :data:`LEGACY_STREAM`. It waits for
            earlier work there, and later work there waits for all nodes.
        non_blocking: the stream is a non-blocking one, as of :class:`Launch`.
        host: the host thread that calls, 0 to 1023.
        gpu: the index of the GPU that runs all its nodes.

    Raises:
        TypeError, ValueError: no graph, not a number from 0 on, or a legacy stream that is
            non-blocking; names the field, the value and the limit.

    Example:
        >>> graph = tb.Graph([tb.Launch(132, 256, 32, duration=1e-5)])
        >>> tb.GraphLaunch(graph, stream=0) == graph.launch(stream=0)
        True
    """

    graph: Graph
    stream: Stream
    non_blocking: bool = False
    host: int = 0
    gpu: int = 0
    # Another graph, which was made executable; this launch gives its kernels other durations.
    _executable: Graph | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        instance("GraphLaunch", "graph", self.graph, Graph)
        object.__setattr__(self, "stream", checked_stream("GraphLaunch", self.stream))
        object.__setattr__(self, "host", checked_host("GraphLaunch", self.host))
        object.__setattr__(self, "gpu", checked_gpu("GraphLaunch", self.gpu))
        if flag("GraphLaunch", "non_blocking", self.non_blocking) and self.stream == LEGACY_STREAM:
            raise ValueError(
                f"GraphLaunch.non_blocking: True, but GraphLaunch.stream is {LEGACY_STREAM!r}, "
                "which blocks"
            )

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The nodes of the graph that are launches."""
        return self.graph.launches

    def __repr__(self) -> str:
        non_blocking = ", non_blocking=True" if self.non_blocking else ""
        host = f", host={self.host}" if self.host else ""
        gpu = f", gpu={self.gpu}" if self.gpu else ""
        return f"{self.graph!r}.launch(stream={self.stream!r}{non_blocking}{host}{gpu})"


def graph_to_data(launched: GraphLaunch) -> dict[str, Any]:
    graph = launched.graph
    data: dict[str, Any] = {"nodes": [_node_to_data(node) for node in graph.nodes]}
    if graph.edges:
        data["edges"] = [[*edge] for edge in graph.edges]
    data["stream"] = launched.stream
    if launched.non_blocking:
        data["non_blocking"] = True
    if launched.host:
        data["host"] = launched.host
    if launched.gpu:
        data["gpu"] = launched.gpu
    return data


def graph_from_data(where: str, given: object) -> GraphLaunch:
    known = ("nodes", "edges", "stream", "non_blocking", "host", "gpu")
    values = known_fields(where, given, known, ("nodes", "stream"))
    nodes = [
        _node_from_data(f"{where}.nodes[{number}]", node)
        for number, node in enumerate(items(where, "nodes", values.pop("nodes")))
    ]
    return GraphLaunch(Graph(nodes, values.pop("edges", ())), **values)


def _node_to_data(node: Node) -> dict[str, Any]:
    if isinstance(node, Launch):
        return {"launch": launch_to_data(node)}
    return {transfer_key(node): transfer_to_data(node)}


def _node_from_data(where: str, given: object) -> Node:
    if isinstance(given, dict) and len(given) == 1:
        ((key, fields),) = given.items()
        if key in _NODES:
            return _NODES[key](f"{where}.{key}", fields)
    return launch_from_data(
        f"{where}.launch", known_fields(where, given, ("launch",), ("launch",))["launch"]
    )
