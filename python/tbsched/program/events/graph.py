"""CUDA graphs: work that waits for each other, issued at once."""

from __future__ import annotations

import graphlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tbsched.errors import shown
from tbsched.program.checks import flag, instance, integer, items, known_fields
from tbsched.program.events.cuda_events import (
    RecordEvent,
    WaitEvent,
    record_event_from_data,
    wait_event_from_data,
)
from tbsched.program.events.graph_memory import (
    MemAlloc,
    MemFree,
    graph_memory_to_data,
    mem_alloc_from_data,
    mem_free_from_data,
)
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
    Numbered,
    copy_from_data,
    memset_from_data,
    transfer_key,
    transfer_to_data,
)
from tbsched.program.written import given_fields
from tbsched.shown import Shown

Node: TypeAlias = Launch | Copy | Memset | HostFunction | RecordEvent | WaitEvent
Memory: TypeAlias = MemAlloc | MemFree
MAX_TIMES = 1_000  # of the body of a conditional node
MAX_DEPTH = 32  # of child graphs and bodies
MAX_EDGES = 1_000_000

# What work in a stream can have, and a node of a graph cannot.
_NOT_IN_A_NODE = {
    "stream", "non_blocking", "programmatic", "trigger", "memory_wait", "completion_event",
    "first_use", "delay", "host", "pinned", "blocking", "gpu", "peer", "timing",
}  # fmt: skip
_NODES: dict[str, Callable[[str, Any], Node | Memory]] = {
    "launch": launch_from_data,
    "copy": copy_from_data,
    "memset": memset_from_data,
    "host_function": host_function_from_data,
    "record_event": record_event_from_data,
    "wait_event": wait_event_from_data,
    "mem_alloc": mem_alloc_from_data,
    "mem_free": mem_free_from_data,
}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Conditional:
    """A conditional node of a :class:`Graph`: an if, or a while whose body runs several times.

    Kernels before it decide, while the graph runs, how often its body runs. ``times`` says what
    they decide. Each run of the body waits for the end of the one before it.

    Args:
        graph: the body. CUDA allows kernels, copies, memsets, child graphs and other conditional
            nodes in it, and nothing else. Several graphs: the body in each run, where runs
            differ, as in durations or in how often a loop within the body runs.
        times: how often the body runs, 0 to 1000. None: once, or once for each of several graphs.

    Attributes:
        graph: the body in its first run.
        times: how often the body runs.

    Raises:
        TypeError, ValueError: no graph, a node in it that CUDA does not allow there, or a number
            out of range.

    Example:
        >>> kernel = tb.Launch(8, 256, 32, duration=1e-5)
        >>> loop = tb.Conditional(tb.Graph([kernel]), times=3)
        >>> len(tb.Graph([kernel, loop], edges=[(0, 1)]).launches)
        4
        >>> outer = tb.Conditional([tb.Graph([kernel, loop]), tb.Graph([kernel])])
        >>> outer.times, len(tb.Graph([outer]).launches)
        (2, 5)
    """

    graph: Graph
    times: int
    _runs: tuple[Graph, ...]  # if they differ

    def __init__(self, graph: Graph | Iterable[Graph], times: int | None = None) -> None:
        runs: tuple[Graph, ...] = ()
        if isinstance(graph, Iterable):
            runs = tuple(
                instance("Conditional", f"graph[{index}]", run, Graph)
                for index, run in enumerate(items("Conditional", "graph", graph))
            )
            if not runs or times not in (None, len(runs)):
                raise ValueError(f"Conditional.graph: {len(runs)} graphs for {times or 1} runs")
            graph, times = runs[0], len(runs)
        object.__setattr__(self, "graph", instance("Conditional", "graph", graph, Graph))
        times = integer("Conditional", "times", 1 if times is None else times, 0, MAX_TIMES)
        object.__setattr__(self, "times", times)
        is_same = all(run == graph for run in runs)
        object.__setattr__(self, "_runs", () if is_same else runs)
        for node in itertools.chain.from_iterable(
            (*run.nodes, *run.memory) for run in (graph, *runs)
        ):
            if isinstance(node, HostFunction | RecordEvent | WaitEvent | Memory):
                raise ValueError(
                    f"Conditional.graph: a {type(node).__name__} is in it, and CUDA allows none in "
                    "the body of a conditional node"
                )

    @property
    def runs(self) -> tuple[Graph, ...]:
        """The body as it runs each time."""
        return self._runs or (self.graph,) * self.times

    def __repr__(self) -> str:
        if self._runs:
            return f"Conditional({[*self._runs]!r})"
        return f"Conditional({self.graph!r}, times={self.times})"


@dataclass(frozen=True, slots=True, init=False)
class Graph(Shown):
    """A CUDA graph: launches, copies, memsets and other nodes, and which wait for which.

    A child graph in it is a node: all of it waits for what comes before that node, and what comes
    after waits for all of it. Graphs are compared by value. To launch equal graphs is to launch one
    graph again.

    Args:
        nodes: each a :class:`Launch`, :class:`Copy`, :class:`Memset`, :class:`HostFunction`,
            :class:`RecordEvent`, :class:`WaitEvent`, :class:`MemAlloc`, :class:`MemFree`,
            :class:`Graph` or :class:`Conditional`. A launch has a duration and no stream. At least
            one launch is there.
        edges: pairs of numbers of nodes: the second node waits for the first. They say which comes
            first of two nodes that record a CUDA event, of which one may wait for it.

    Attributes:
        parts: what was given as ``nodes``, a tuple.
        part_edges: what was given as ``edges``, a tuple of tuples.
        nodes: the nodes that do something, a tuple: child graphs are taken apart, the body of a
            conditional node is there as often as it runs, and what only allocates or frees memory
            is left out.
        edges: the pairs of these, a tuple of tuples.
        memory: the nodes that allocate and free memory, those of child graphs included.

    Raises:
        TypeError, ValueError: a node that is none of these; no launch; an edge to or from a node
            that is not there, or that is given twice; edges in a circle; too many nodes; nodes of
            a CUDA event, or of memory, of which edges do not say which is first.

    Example:
        >>> kernel = tb.Launch(132, 256, 32, duration=1e-5)
        >>> graph = tb.Graph([kernel, kernel, kernel], edges=[(0, 2), (1, 2)])
        >>> tb.Sequence([graph.launch(stream=0), graph.launch(stream=0)]).launches == 6 * (kernel,)
        True
        >>> tb.Graph([kernel, graph, kernel], edges=[(0, 1), (1, 2)]).edges
        ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4))
    """

    parts: tuple[Part, ...]
    part_edges: tuple[tuple[int, int], ...]
    nodes: tuple[Node, ...] = field(compare=False)
    edges: tuple[tuple[int, int], ...] = field(compare=False)
    memory: tuple[Memory, ...] = field(compare=False)
    # Deciders are kernels of the driver that decide for conditional nodes: the number of the node
    # before which each stands. In the edges with them they are numbered behind the nodes.
    _deciders: tuple[int, ...] = field(compare=False)
    _decided_edges: tuple[tuple[int, int], ...] = field(compare=False)

    def __init__(self, nodes: Iterable[Part], edges: Iterable[tuple[int, int]] = ()) -> None:
        parts_given = tuple(
            _checked_part(f"Graph.nodes[{index}]", node)
            for index, node in enumerate(items("Graph", "nodes", nodes))
        )
        if not 1 <= len(parts_given) <= MAX_LAUNCHES:
            raise ValueError(f"Graph.nodes: {len(parts_given)} nodes are outside 1..{MAX_LAUNCHES}")
        object.__setattr__(self, "parts", parts_given)
        object.__setattr__(self, "part_edges", _checked_edges(edges, len(parts_given)))
        count = sum(map(_count_nodes, parts_given))
        if count > MAX_LAUNCHES:
            raise ValueError(
                f"Graph.nodes: {count} nodes with those of child graphs and of all runs of bodies, "
                f"at most {MAX_LAUNCHES}"
            )
        nodes_of_parts = map(_nodes_of, parts_given)
        object.__setattr__(self, "nodes", tuple(itertools.chain.from_iterable(nodes_of_parts)))
        memory = map(_memory_of, parts_given)
        object.__setattr__(self, "memory", tuple(itertools.chain.from_iterable(memory)))
        flat = _Flat(self) if self.is_nested or self.memory else None
        object.__setattr__(self, "edges", tuple(flat.edges) if flat else self.part_edges)
        object.__setattr__(self, "_decided_edges", tuple(flat.decided) if flat else self.edges)
        object.__setattr__(self, "_deciders", tuple(flat.deciders) if flat else ())
        if not self.launches:
            raise ValueError("Graph.nodes: no Launch among them; at least one is needed")
        _check_order(self)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The nodes that are launches, in order."""
        return tuple(node for node in self.nodes if isinstance(node, Launch))

    @property
    def transfers(self) -> tuple[Numbered, ...]:
        """The nodes that are no launches, in order."""
        return tuple(node for node in self.nodes if not isinstance(node, Launch))

    @property
    def is_nested(self) -> bool:
        """Whether a child graph or conditional node is among its parts."""
        return any(isinstance(part, Graph | Conditional) for part in self.parts)

    @property
    def has_conditionals(self) -> bool:
        """Returns whether the graph or one of its child graphs has a conditional node."""
        return any(
            isinstance(part, Conditional) or (isinstance(part, Graph) and part.has_conditionals)
            for part in self.parts
        )

    @property
    def _as_made(self) -> tuple[tuple[_Made, ...], tuple[Edge, ...]] | None:
        """The nodes and edges as CUDA gets them, in which a conditional node is one node; None:
        they are the nodes and edges that run."""
        if not self.has_conditionals and not self.memory:
            return None
        return tuple(_parts_of(self)), tuple(_Flat(self, apart=True).edges)

    def launch(
        self, stream: Stream = 0, *, non_blocking: bool = False, host: int = 0, gpu: int = 0
    ) -> GraphLaunch:
        """Returns the launch of the graph in a stream, an event for a :class:`Sequence`.

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

    def with_nodes(self, nodes: Iterable[Node]) -> Graph:
        """Returns the graph with other nodes in the place of ``nodes``, child graphs as they are.

        Raises:
            ValueError: not as many.

        Example:
            >>> graph = tb.Graph([tb.Launch(4, 64, 32, duration=1e-3)])
            >>> graph.with_nodes([tb.Launch(8, 64, 32, duration=1e-3)]).nodes[0].blocks
            8
        """
        new_nodes = iter(nodes)
        changed = self._with(new_nodes)
        if next(new_nodes, None) is not None:
            raise ValueError(f"nodes: more than {len(self.nodes)}")
        return changed

    def _with(self, new_nodes: Iterator[Node]) -> Graph:
        """Returns the graph with its nodes replaced by the next ones of ``new_nodes``."""

        def changed(part: Part) -> Part:
            if isinstance(part, Graph):
                return part._with(new_nodes)
            if isinstance(part, Conditional):
                if not part.times:
                    return part
                return Conditional([run._with(new_nodes) for run in part.runs])
            if isinstance(part, Memory):
                return part
            new_node = next(new_nodes, None)
            if new_node is None:
                raise ValueError(f"nodes: fewer than {len(self.nodes)}")
            return new_node

        return Graph([changed(part) for part in self.parts], self.part_edges)

    def __repr__(self) -> str:
        edges = f", edges={[*self.part_edges]!r}" if self.part_edges else ""
        return f"Graph({[*self.parts]!r}{edges})"


_Made: TypeAlias = Node | Memory | Conditional
Part: TypeAlias = _Made | Graph
Edge: TypeAlias = tuple[int, int]
_Ends: TypeAlias = dict[int, None]  # nodes and deciders that something waits for, in order


def _nodes_of(part: Part) -> tuple[Node, ...]:
    """Returns the nodes that a part of a graph stands for, as it ran."""
    if isinstance(part, Conditional):
        return tuple(itertools.chain.from_iterable(run.nodes for run in part.runs))
    if isinstance(part, Memory):
        return ()
    return part.nodes if isinstance(part, Graph) else (part,)


def _memory_of(part: Part) -> tuple[Memory, ...]:
    if isinstance(part, Memory):
        return (part,)
    return part.memory if isinstance(part, Graph) else ()


def _count_nodes(part: Part) -> int:
    """Returns how many nodes a part of a graph stands for."""
    if isinstance(part, Conditional):
        return sum(len(run.nodes) for run in part.runs)
    if isinstance(part, Memory):
        return 0
    return len(part.nodes) if isinstance(part, Graph) else 1


def _parts_of(graph: Graph) -> Iterator[_Made]:
    """Yields the parts of a graph and of its child graphs."""
    for part in graph.parts:
        if isinstance(part, Graph):
            yield from _parts_of(part)
        else:
            yield part


class _Flat:
    """The edges between the nodes of a graph whose child graphs are taken apart.

    Args:
        apart: whether a conditional node is one node, and not its body in each of its runs, and
            whether what allocates or frees memory is a node.

    Attributes:
        edges: from each node to those that wait for it.
        decided: the same with deciders in between, numbered behind the nodes.
        deciders: the node before which each stands.
    """

    def __init__(self, graph: Graph, *, apart: bool = False) -> None:
        self.edges: dict[Edge, None] = {}
        self.decided: dict[Edge, None] = {}
        self.deciders: list[int] = []
        self._before: list[_Ends] = []  # the nodes that each decider waits for
        self._apart = apart
        self._nodes = sum(map(self._count, graph.parts))
        self._add(graph, 0, {}, depth=0)

    def _add(self, graph: Graph, first: int, before: _Ends, depth: int) -> _Ends:
        """Adds the edges that lead to a graph's nodes, and returns the nodes that end it: those
        that nothing in it follows.

        Args:
            graph: its nodes have the numbers from ``first`` on.
            before: the nodes that it waits for.
            depth: of how many graphs it is a child, each in the next.
        """
        if depth > MAX_DEPTH:
            raise ValueError(f"Graph.nodes: child graphs more than {MAX_DEPTH} deep")
        counts = map(self._count, graph.parts)
        firsts = [*itertools.accumulate(counts, initial=first)]
        predecessors: dict[int, list[int]] = {part: [] for part in range(len(graph.parts))}
        for predecessor, successor in graph.part_edges:
            predecessors[successor].append(predecessor)
        ends: dict[int, _Ends] = {}
        for part in graphlib.TopologicalSorter(predecessors).static_order():
            waits_for = (
                _joined(ends[predecessor] for predecessor in predecessors[part])
                if predecessors[part]
                else before
            )
            ends[part] = self._add_part(graph.parts[part], firsts[part], waits_for, depth)
        passed = {predecessor for predecessor, _ in graph.part_edges}
        return _joined(ends[part] for part in predecessors if part not in passed)

    def _add_part(self, part: Part, first: int, before: _Ends, depth: int) -> _Ends:
        """Adds the edges that lead to a part of a graph, and returns the nodes that end it.
        Arguments are as for _add()."""
        if isinstance(part, Graph):
            return self._add(part, first, before, depth + 1)
        if isinstance(part, Memory) and not self._apart:
            return before
        if self._apart or not isinstance(part, Conditional):
            return self._add_node(first, before)
        ends = self._decide(first, before)
        for run in part.runs:
            ends = self._add(run, first, ends, depth + 1)
            first += len(run.nodes)
            ends = self._decide(first, ends)
        return ends

    def _decide(self, node: int, before: _Ends) -> _Ends:
        """Adds a decider, which follows the nodes ``before`` and stands before ``node``. Returns it
        as the end of what it follows."""
        decider = self._nodes + len(self.deciders)
        self.deciders.append(node)
        self._before.append(self._nodes_of(before))
        self._add_edges(before, decider)
        return {decider: None}

    def _nodes_of(self, ends: _Ends) -> _Ends:
        """Returns the same ends with each decider replaced by the nodes before it."""
        return _joined(
            {end: None} if end < self._nodes else self._before[end - self._nodes] for end in ends
        )

    def _add_edges(self, before: _Ends, node: int) -> None:
        self.decided.update(dict.fromkeys((earlier, node) for earlier in before))
        if max(len(self.edges), len(self.decided)) > MAX_EDGES:
            raise ValueError(f"Graph.nodes: more than {MAX_EDGES} edges between all nodes")

    def _count(self, part: Part) -> int:
        if not self._apart:
            return _count_nodes(part)
        return sum(map(self._count, part.parts)) if isinstance(part, Graph) else 1

    def _add_node(self, node: int, before: _Ends) -> _Ends:
        self.edges.update(dict.fromkeys((earlier, node) for earlier in self._nodes_of(before)))
        self._add_edges(before, node)
        return {node: None}


def _joined(ends: Iterable[_Ends]) -> _Ends:
    return dict.fromkeys(itertools.chain.from_iterable(ends))


def _check_order(graph: Graph) -> None:
    """Checks that edges say which is first of two nodes of a CUDA event, or of memory."""
    if not graph.memory and not any(isinstance(n, RecordEvent | WaitEvent) for n in graph.nodes):
        return
    nodes, edges = graph._as_made or (graph.nodes, graph.edges)
    before: dict[int, list[int]] = {node_index: [] for node_index in range(len(nodes))}
    for predecessor, successor in edges:
        before[successor].append(predecessor)
    bits: dict[int, int] = {}  # by node of an event or of memory
    earlier: dict[int, int] = {}  # by node: the bits of those before it
    nodes_by_object: dict[tuple[str, object], list[int]] = {}
    for node_index in graphlib.TopologicalSorter(before).static_order():
        earlier[node_index] = 0
        for earlier_node in before[node_index]:
            earlier[node_index] |= earlier[earlier_node] | bits.get(earlier_node, 0)
        node = nodes[node_index]
        if isinstance(node, RecordEvent | WaitEvent | Memory):
            bits[node_index] = 1 << len(bits)
            key = ("memory", node.name) if isinstance(node, Memory) else ("CUDA event", node.event)
            nodes_by_object.setdefault(key, []).append(node_index)
    for (kind_of_object, name), node_indices in nodes_by_object.items():
        kinds = [type(nodes[node_index]) for node_index in node_indices]
        is_once = kinds in ([MemAlloc], [MemFree], [MemAlloc, MemFree])
        if kind_of_object == "memory" and not (is_once and node_indices == sorted(node_indices)):
            raise ValueError(
                f"Graph.nodes: memory {shown(name)} is allocated at most once, and then freed at "
                "most once by a later node, got "
                f"{shown(', '.join(kind.__name__ for kind in kinds))}"
            )
        all_of_it = records = 0
        for node_index, kind in zip(node_indices, kinds, strict=True):
            missing = (records if kind is WaitEvent else all_of_it) & ~earlier[node_index]
            if missing:
                unordered = next(index for index in node_indices if bits[index] & missing)
                raise ValueError(
                    f"Graph.edges: they do not say which is first of {nodes[unordered]!r} and "
                    f"{nodes[node_index]!r}, nodes of the same {kind_of_object}"
                )
            all_of_it |= bits[node_index]
            records |= 0 if kind is WaitEvent else bits[node_index]


def _checked_part(where: str, node: Part) -> Part:
    """Returns a part of a graph, and refuses what cannot be one."""
    if isinstance(node, Graph | Conditional | Memory):
        return node
    if not isinstance(node, Node):
        raise TypeError(
            f"{where}: a Launch, Copy, Memset, HostFunction, RecordEvent, WaitEvent, MemAlloc, "
            f"MemFree, Graph or Conditional is needed, got {shown(node)}"
        )
    if isinstance(node, Launch) and node.duration is None:
        raise ValueError(f"{where}.duration: None; each node of a graph needs one")
    for name, value in given_fields(node).items():
        if name in _NOT_IN_A_NODE:
            has = "pinned memory" if name == "pinned" else "none"
            raise ValueError(f"{where}.{name}: {value!r}, but a node of a graph has {has}")
    return node


def _checked_edges(edges: Iterable[tuple[int, int]], nodes: int) -> tuple[tuple[int, int], ...]:
    """Returns the edges of a graph, checked: pairs of numbers of its nodes, all different, without
    a cycle."""
    distinct: dict[tuple[int, int], None] = {}
    order: graphlib.TopologicalSorter[int] = graphlib.TopologicalSorter()
    for index, edge in enumerate(items("Graph", "edges", edges)):
        field = f"edges[{index}]"
        ends = tuple(items("Graph", field, edge))
        if len(ends) != 2:
            raise ValueError(f"Graph.{field}: two numbers of nodes are needed, got {shown(edge)}")
        before, after = (integer("Graph", field, end, 0, nodes - 1) for end in ends)
        if (before, after) in distinct:
            raise ValueError(f"Graph.{field}: {(before, after)} is among the edges already")
        distinct[before, after] = None
        order.add(after, before)
    try:
        order.prepare()
    except graphlib.CycleError as error:
        circle = " -> ".join(map(str, error.args[1]))
        raise ValueError(f"Graph.edges: {shown(circle)} is a circle of nodes") from None
    return tuple(distinct)


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
    """Returns a launch of a graph as JSON data, as trace files hold it."""
    data = _parts_to_data(launched.graph)
    data["stream"] = launched.stream
    if launched.non_blocking:
        data["non_blocking"] = True
    if launched.host:
        data["host"] = launched.host
    if launched.gpu:
        data["gpu"] = launched.gpu
    return data


def graph_from_data(where: str, data: object) -> GraphLaunch:
    """Returns the inverse of graph_to_data(); ``where`` is for messages of errors."""
    known = ("nodes", "edges", "stream", "non_blocking", "host", "gpu")
    values = known_fields(where, data, known, ("nodes", "stream"))
    graph = _graph_from(where, values.pop("nodes"), values.pop("edges", ()), depth=0)
    return GraphLaunch(graph, **values)


def _parts_to_data(graph: Graph) -> dict[str, Any]:
    """Returns the nodes and edges of a graph as JSON data."""
    data: dict[str, Any] = {"nodes": [_part_to_data(part) for part in graph.parts]}
    if graph.part_edges:
        data["edges"] = [[*edge] for edge in graph.part_edges]
    return data


def _part_to_data(part: Part) -> dict[str, Any]:
    """Returns a part of a graph as JSON data: an object whose only key is its kind."""
    if isinstance(part, Launch):
        return {"launch": launch_to_data(part)}
    if isinstance(part, Graph):
        return {"graph": _parts_to_data(part)}
    if isinstance(part, Conditional):
        return {"conditional": _conditional_to_data(part)}
    if isinstance(part, Memory):
        return {_MEMORY_KEYS[type(part)]: graph_memory_to_data(part)}
    return {transfer_key(part): transfer_to_data(part)}


_MEMORY_KEYS: dict[type[Memory], str] = {MemAlloc: "mem_alloc", MemFree: "mem_free"}


def _conditional_to_data(conditional: Conditional) -> dict[str, Any]:
    if conditional._runs:
        return {"runs": [_parts_to_data(run) for run in conditional._runs]}
    return {"graph": _parts_to_data(conditional.graph), "times": conditional.times}


def _conditional_from_data(where: str, data: object, depth: int) -> Conditional:
    """Returns a conditional node from JSON data. ``where`` is for messages of errors, ``depth`` how
    many graphs it is in."""
    if isinstance(data, dict) and "runs" in data:
        runs = items(where, "runs", known_fields(where, data, ("runs",), ("runs",))["runs"])
        return Conditional([
            _child_from_data(f"{where}.runs[{index}]", run, depth)
            for index, run in enumerate(runs)
        ])  # fmt: skip
    values = known_fields(where, data, ("graph", "times"), ("graph",))
    body = _child_from_data(f"{where}.graph", values.pop("graph"), depth)
    return Conditional(body, **values)


def _graph_from(where: str, nodes: Any, edges: Any, depth: int) -> Graph:
    """Returns a graph of the nodes and edges in JSON data. ``where`` is for messages of errors,
    ``depth`` how many graphs it is in."""
    if depth > MAX_DEPTH:
        raise ValueError(f"{where}: child graphs more than {MAX_DEPTH} deep")
    parts = [
        _part_from_data(f"{where}.nodes[{index}]", node, depth)
        for index, node in enumerate(items(where, "nodes", nodes))
    ]
    return Graph(parts, edges)


def _child_from_data(where: str, data: object, depth: int) -> Graph:
    values = known_fields(where, data, ("nodes", "edges"), ("nodes",))
    return _graph_from(where, values["nodes"], values.get("edges", ()), depth + 1)


def _part_from_data(where: str, data: object, depth: int) -> Part:
    """Returns a part of a graph from JSON data. ``where`` is for messages of errors, ``depth`` how
    many graphs it is in."""
    if isinstance(data, dict) and len(data) == 1:
        ((key, fields),) = data.items()
        if key in _NODES:
            return _NODES[key](f"{where}.{key}", fields)
        if key == "graph":
            return _child_from_data(f"{where}.{key}", fields, depth)
        if key == "conditional":
            return _conditional_from_data(f"{where}.{key}", fields, depth)
    return launch_from_data(
        f"{where}.launch", known_fields(where, data, ("launch",), ("launch",))["launch"]
    )
