"""Graphs: which nodes and edges they may have, and how they are printed and written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tbsched import _core
from tbsched.program.events.kinds import event_from_data, event_to_data
from tbsched.program.partition import Partition
from tbsched.program.sequence import (
    Copy,
    Graph,
    GraphLaunch,
    Launch,
    Memset,
    Sequence,
    with_launches,
)

NODE = Launch(2, 32, 16, duration=1e-3)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("stream", 0, "stream: 0, but a node of a graph has none"),
        ("duration", None, "duration: None; each node of a graph needs one"),
        ("non_blocking", True, "non_blocking: True, but"),
        ("programmatic", True, "programmatic: True, but"),
        ("trigger", 0.0, "trigger: 0.0, but"),
        ("memory_wait", 0.0, "memory_wait: 0.0, but"),
        ("completion_event", 0, "completion_event: 0, but"),
    ],
)
def test_node_is_of_no_stream_and_has_a_duration(field: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"Graph\.nodes\[1\]\.{message}"):
        Graph([NODE, replace(NODE, **{field: value})])


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 3)], r"Graph\.edges\[0\]: 3 is outside 0\.\.2"),
        ([(0, 1), (-1, 2)], r"Graph\.edges\[1\]: -1 is outside"),
        ([(0, 1, 2)], r"Graph\.edges\[0\]: two numbers of nodes are needed, got \(0, 1, 2\)"),
        ([(0, 1), (1, 2), (0, 1)], r"Graph\.edges\[2\]: \(0, 1\) is among the edges already"),
        ([(1, 1)], r"Graph\.edges: '1 -> 1' is a circle"),
        ([(0, 1), (1, 2), (2, 0)], r"Graph\.edges: '.* -> .* -> .* -> .*' is a circle of nodes"),
    ],
)
def test_edges_join_nodes_once_and_never_in_a_circle(edges: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Graph([NODE, NODE, NODE], edges)


def test_graph_has_nodes() -> None:
    with pytest.raises(ValueError, match=r"Graph\.nodes: 0 nodes are outside 1\.\.1000000"):
        Graph([])
    with pytest.raises(
        TypeError, match=r"nodes\[0\]: a Launch, Copy, Memset, HostFunction, .* is needed, got 5"
    ):
        Graph([5])  # type: ignore[list-item]


def test_graph_of_copies_alone_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Graph\.nodes: no Launch among them; at least one"):
        Graph([Copy(1, "h2d"), Memset(1)])


@pytest.mark.parametrize(
    ("kind", "given", "error", "message"),
    [
        (Copy, (0, "h2d"), ValueError, r"Copy\.bytes: 0 is outside 1\.\.1073741824"),
        (Memset, ((1 << 30) + 1,), ValueError, r"Memset\.bytes: 1073741825 is outside"),
        (Memset, (1.5,), TypeError, r"Memset\.bytes: an integer is needed, got 1\.5"),
        (Copy, (1, "h2h"), ValueError, r"Copy\.kind: 'h2h' is unknown; .* h2d, d2h, d2d"),
        (Copy, (1, 2), TypeError, r"Copy\.kind: text is needed, got 2"),
        (Copy, (1, "d2d", -1.0), ValueError, r"Copy\.duration: -1\.0 is outside"),
        (Memset, (1, "1"), TypeError, r"Memset\.duration: seconds are needed"),
    ],
)
def test_copies_and_memsets_are_checked(
    kind: Any, given: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        kind(*given)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"stream": -2}, ValueError, r"Copy\.stream: -2 is outside 0\.\."),
        ({"stream": "legacy", "non_blocking": True}, ValueError, r"Copy\.non_blocking: True, but"),
        ({"non_blocking": 1}, TypeError, r"Copy\.non_blocking: True or False is needed"),
        ({"pinned": 0}, TypeError, r"Copy\.pinned: True or False is needed"),
        ({"pinned": False}, ValueError, r"Copy\.pinned: False, but a 'd2d' copy uses no memory"),
        ({"blocking": "yes"}, TypeError, r"Copy\.blocking: True or False is needed"),
    ],
)
def test_fields_of_a_copy_are_checked(
    fields: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Copy(1, "d2d", **fields)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (Copy(1, "d2d", stream=0), r"nodes\[1\]\.stream: 0, but a node of a graph has none"),
        (Copy(1, "h2d", pinned=False), r"pinned: False, but a node of a graph has pinned memory"),
        (Copy(1, "h2d", blocking=True), r"blocking: True, but a node of a graph has none"),
        (Memset(1, non_blocking=True), r"non_blocking: True, but a node of a graph has none"),
    ],
)
def test_nodes_have_no_streams(node: Copy | Memset, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Graph([NODE, node])


def test_copies_have_no_number_among_the_launches() -> None:
    graph = Graph([Memset(8), NODE, Copy(8, "d2h"), NODE], [(0, 1), (1, 2), (2, 3)])
    assert graph.launches == Sequence([graph.launch()]).launches == (NODE, NODE)
    other = replace(NODE, blocks=7)
    changed = with_launches(Sequence([graph.launch()]), [other, NODE])
    assert changed.events == (Graph([Memset(8), other, *graph.nodes[2:]], graph.edges).launch(),)


def test_nodes_and_edges_come_from_any_iterable() -> None:
    graph = Graph((node for node in [NODE, NODE]), edges=([0, 1] for _ in range(1)))  # type: ignore[misc]
    assert graph == Graph((NODE, NODE), edges=[(0, 1)])
    assert hash(graph) == hash(Graph((NODE, NODE), edges=[(0, 1)]))
    assert graph != Graph((NODE, NODE))


@pytest.mark.parametrize(
    ("launched", "source", "data"),
    [
        (Graph([NODE]).launch(), "Graph([{n}]).launch(stream=0)", {"stream": 0}),
        (
            Graph([NODE, NODE], edges=[(1, 0)]).launch("legacy"),
            "Graph([{n}, {n}], edges=[(1, 0)]).launch(stream='legacy')",
            {"stream": "legacy", "edges": [[1, 0]]},
        ),
        (
            Graph([NODE]).launch(7, non_blocking=True),
            "Graph([{n}]).launch(stream=7, non_blocking=True)",
            {"stream": 7, "non_blocking": True},
        ),
        (
            Graph([NODE, Memset(8), Copy(9, "d2h", duration=1e-5)]).launch(),
            "Graph([{n}, Memset(8), Copy(9, 'd2h', duration=1e-05)]).launch(stream=0)",
            {
                "stream": 0,
                "nodes": [
                    event_to_data(NODE),
                    {"memset": {"bytes": 8}},
                    {"copy": {"bytes": 9, "kind": "d2h", "duration": 1e-5}},
                ],
            },
        ),
    ],
)
def test_launched_graph_is_printed_and_written_without_defaults(
    launched: GraphLaunch, source: str, data: dict[str, Any]
) -> None:
    assert repr(launched) == source.format(n=repr(NODE))
    written: Any = event_to_data(launched)
    nodes = [event_to_data(node) for node in launched.launches]
    assert written == {"graph": {"nodes": nodes, **data}}
    assert event_from_data("here", written) == launched


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nodes": []}, r"here\.graph: stream is missing"),
        ({"nodes": 1, "stream": 0}, r"here\.graph\.nodes: a list is needed, got 1"),
        ({"nodes": [{"release": 0}], "stream": 0}, r"here\.graph\.nodes\[0\]: launch is missing"),
        ({"nodes": [{"launch": {}}], "stream": 0}, r"nodes\[0\]\.launch: blocks is missing"),
        ({"nodes": [{"copy": {"bytes": 1}}], "stream": 0}, r"nodes\[0\]\.copy: kind is missing"),
        (
            {"nodes": [{"memset": {"bytes": 1, "kind": "h2d"}}], "stream": 0},
            r"nodes\[0\]\.memset: 'kind' is unknown",
        ),
        ({"nodes": [], "stream": 0, "edge": []}, r"'edge' is unknown; .*did you mean 'edges'"),
    ],
)
def test_what_a_file_has_as_graph_is_refused_by_its_place(given: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        event_from_data("here", {"graph": given})


def test_stream_of_a_graph_is_given_and_of_one_kind() -> None:
    with pytest.raises(TypeError, match=r"GraphLaunch\.stream: an integer is needed, got None"):
        GraphLaunch(Graph([NODE]), None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"GraphLaunch\.non_blocking: True, but .* 'legacy'"):
        Graph([NODE]).launch("legacy", non_blocking=True)


def test_graph_makes_a_sequence_timed() -> None:
    seq = Sequence([Graph([NODE, NODE]).launch(), NODE])
    assert seq.timed
    assert seq.launches == (NODE, NODE, NODE)
    with pytest.raises(ValueError, match=r"Sequence\.events\[0\]: .*durations"):
        Sequence([Launch(1, 1, 1), Graph([NODE]).launch()])


def test_launched_graphs_and_the_launches_of_a_stream_agree_whether_it_blocks() -> None:
    graph = Graph([NODE])
    message = r"Sequence\.events\[1\]: Launch\.non_blocking: False in stream 3, .* has True; all"
    with pytest.raises(ValueError, match=message):
        Sequence([graph.launch(3, non_blocking=True), replace(NODE, stream=3)])
    with pytest.raises(ValueError, match=r"events\[1\]: GraphLaunch\.non_blocking: True in stream"):
        Sequence([graph.launch(3), graph.launch(3, non_blocking=True)])
    assert len(Sequence([graph.launch(3), graph.launch(4, non_blocking=True)])) == 2


def test_all_launches_of_a_stream_have_its_partition_and_graphs_have_streams_of_none() -> None:
    here, there = (replace(NODE, stream=3, partition=Partition((sm,))) for sm in (0, 1))
    message = r"events\[1\]: Launch\.partition: .*\(1,\)\) in stream 3, .* has Partition.*\(0,"
    with pytest.raises(ValueError, match=message):
        Sequence([here, there])
    with pytest.raises(ValueError, match=r"events\[1\]: GraphLaunch\.partition: None in stream 3"):
        Sequence([here, Graph([NODE]).launch(3)])
    assert len(Sequence([here, here, replace(there, stream=4), replace(there, stream=None)])) == 4
    assert len(Sequence([replace(each, duration=None) for each in (here, there)])) == 2  # held


def test_core_takes_graphs() -> None:
    graph = Graph([NODE, NODE], edges=[(0, 1)])
    assert isinstance(_core.Sequence([graph.launch(), graph.launch("legacy")]), _core.Sequence)
