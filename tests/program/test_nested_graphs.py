"""Graphs in graphs, and conditional nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import gpu
from tbsched.prediction.predict import predict
from tbsched.program.events.graph import MAX_DEPTH
from tbsched.program.sequence import (
    Conditional,
    Copy,
    Graph,
    HostFunction,
    Launch,
    Memset,
    Sequence,
    with_launches,
)

US = 1e-6
NODE = Launch(1, 32, 16, duration=10 * US)
DECIDE_NS = 1_000
GPU = replace(gpu(sms=4), conditional_ns=DECIDE_NS)


def starts(*parts: Launch | Graph | Conditional, edges: list[tuple[int, int]]) -> list[int]:
    """When each launch starts, in microseconds."""
    trace = predict(Sequence([Graph(parts, edges).launch(0)]), GPU)
    return [int(rows.start_ns.min()) // 1000 for rows in trace if rows.start_ns is not None]


def test_child_graph_waits_and_is_awaited_as_a_whole() -> None:
    child = Graph([NODE, replace(NODE, duration=20 * US), NODE], edges=[(0, 2)])
    assert starts(NODE, child, NODE, edges=[(0, 1), (1, 2)]) == [0, 10, 10, 20, 30]


def test_body_runs_so_many_times_one_after_the_other() -> None:
    loop = Conditional(Graph([NODE]), times=3)
    assert starts(NODE, loop, NODE, edges=[(0, 1), (1, 2)]) == [0, 11, 22, 33, 44]


def test_node_behind_a_body_that_does_not_run_waits_for_the_decision() -> None:
    none = Conditional(Graph([NODE]), times=0)
    assert starts(NODE, none, NODE, edges=[(0, 1), (1, 2)]) == [0, 11]
    assert starts(none, NODE, NODE, edges=[(0, 1)]) == [1, 0]


def test_conditional_node_that_waits_for_nothing_decides_first() -> None:
    loop = Conditional(Graph([NODE, NODE]), times=2)
    assert starts(loop, NODE, edges=[(0, 1)]) == [1, 1, 12, 12, 23]


def test_conditional_nodes_are_nested() -> None:
    inner = Conditional(Graph([NODE]), times=2)
    outer = Conditional(Graph([NODE, inner], edges=[(0, 1)]), times=2)
    assert starts(outer, NODE, edges=[(0, 1)]) == [1, 12, 23, 35, 46, 57, 69]


def test_graph_is_the_same_flat() -> None:
    child = Graph([NODE, Memset(64)], edges=[(0, 1)])
    nested = Graph([child, child, Copy(64, "h2d")], edges=[(0, 1), (1, 2)])
    assert nested.nodes == (*child.nodes, *child.nodes, Copy(64, "h2d"))
    assert nested.edges == ((0, 1), (1, 2), (2, 3), (3, 4))
    flat = Graph(nested.nodes, nested.edges)
    for device in ("h200", "rtx3090"):
        one, other = (predict(Sequence([each.launch(0)]), device) for each in (nested, flat))
        assert one.timeline["start_ns"].tolist() == other.timeline["start_ns"].tolist()
    assert nested != flat


@st.composite
def graphs(draw: st.DrawFn, parts: st.SearchStrategy[object]) -> Graph:
    chosen = [NODE, *draw(st.lists(parts, max_size=3))]
    pairs = [(a, b) for b in range(len(chosen)) for a in range(b)]
    return Graph(chosen, draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else [])


PARTS = st.recursive(
    st.sampled_from([NODE, Memset(64)]),
    lambda parts: st.one_of(
        graphs(parts),
        st.builds(Conditional, graphs(parts), st.integers(0, 3)),
        st.builds(Conditional, st.lists(graphs(parts), min_size=1, max_size=3)),
    ),
    max_leaves=6,
)


@given(graphs(PARTS))
def test_graphs_come_back_from_json_with_as_many_nodes(graph: Graph) -> None:
    program = Sequence([graph.launch(0)])
    again = Sequence.from_json(program.to_json())
    assert again == program
    assert len(again.launches) == len(graph.launches)
    assert eval(repr(graph), globals()) == graph
    assert graph.with_nodes(graph.nodes) == graph


@given(graphs(PARTS))
def test_every_node_waits_for_all_that_it_must(graph: Graph) -> None:
    """Ends of nodes and decisions come before the starts behind them."""
    trace = predict(Sequence([graph.launch(0)]), replace(GPU, node_interval_ns=0))
    times = {}
    rows, transfers = iter(trace), iter(trace.transfer_ns if trace.transfer_ns is not None else [])
    for number, node in enumerate(graph.nodes):
        if isinstance(node, Launch):
            placed = next(rows)
            assert placed.start_ns is not None
            assert placed.end_ns is not None
            times[number] = int(placed.start_ns.min()), int(placed.end_ns.max())
        else:
            times[number] = tuple(int(time) for time in next(transfers))
    # A decider has the next number behind the nodes, and those before it have lower ones.
    ends = {number: end for number, (_, end) in times.items()}
    for one, other in sorted(graph._decided_edges, key=lambda edge: edge[1]):
        if other < len(graph.nodes):
            continue
        ends[other] = max(ends.get(other, 0), ends.get(one, 0) + DECIDE_NS)
    for one, other in graph._decided_edges:
        if other < len(graph.nodes):
            assert times[other][0] >= ends.get(one, 0)
    for one, other in graph.edges:
        assert times[other][0] >= times[one][1]


def test_a_body_that_changes_alike_in_each_run_is_another_body() -> None:
    longer = replace(NODE, duration=3 * US)
    changed = Graph([Conditional(Graph([NODE]), times=3)]).with_nodes([longer] * 3)
    assert changed == Graph([Conditional(Graph([longer]), times=3)])


def test_launches_of_each_run_of_a_body_may_differ() -> None:
    graph = Graph([Conditional(Graph([NODE]), times=3)])
    longer = [replace(NODE, duration=number * US) for number in (1, 2, 3)]
    changed = with_launches(Sequence([graph.launch(0)]), longer)
    assert changed.launches == tuple(longer)
    assert changed != Sequence([graph.launch(0)])
    ends = predict(changed, GPU).timeline["end_ns"]
    assert ends.tolist() == [2_000, 5_000, 9_000]


def test_runs_that_differ_come_back_from_json() -> None:
    once, thrice = (Conditional(Graph([NODE]), times) for times in (1, 3))
    outer = Conditional([Graph([NODE, once]), Graph([NODE, thrice]), Graph([Memset(64), once])])
    graph = Graph([outer, NODE], edges=[(0, 1)])
    assert len(graph.launches) == 2 + 4 + 1 + 1
    program = Sequence([graph.launch(0)])
    again = Sequence.from_json(program.to_json())
    assert again == program
    assert again.launches == program.launches
    assert eval(repr(graph), globals()) == graph
    longer = [replace(NODE, duration=number * US) for number in range(len(graph.launches))]
    changed = with_launches(program, longer)
    assert Sequence.from_json(changed.to_json()).launches == tuple(longer)


def test_a_conditional_of_an_older_file_is_read() -> None:
    fields = f'"blocks":1,"threads":32,"registers":16,"duration":{NODE.duration}'
    node = f'{{"launch":{{{fields}}}}}'
    body = f'{{"conditional":{{"graph":{{"nodes":[{node}]}},"times":2}}}}'
    program = Sequence.from_json(f'[{{"graph":{{"nodes":[{body}],"stream":0}}}}]')
    assert program == Sequence([Graph([Conditional(Graph([NODE]), times=2)]).launch(0)])
    assert '"times":2' in program.to_json()
    assert "runs" not in program.to_json()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Conditional([]), r"Conditional\.graph: 0 graphs"),
        (lambda: Conditional([Graph([NODE])], 2), r"Conditional\.graph: 1 graphs for 2 runs"),
        (lambda: Conditional([Graph([NODE]), NODE]), r"Conditional\.graph\[1\]: a Graph is needed"),
        (lambda: Conditional(NODE), "Conditional.graph: a Graph is needed"),
        (lambda: Conditional(Graph([NODE]), -1), r"Conditional\.times: -1 is outside 0\.\.1000"),
        (lambda: Conditional(Graph([NODE]), 1001), r"Conditional\.times: 1001 is outside"),
        (lambda: Conditional(Graph([NODE, HostFunction()])), "CUDA allows none in the body"),
        (lambda: Graph([Conditional(Graph([NODE]), 0)]), "no Launch among them"),
        (lambda: Graph([3]), "Graph or Conditional is needed, got 3"),
    ],
)
def test_what_cuda_does_not_take_is_refused(make: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()  # type: ignore[operator]


def test_graphs_are_not_nested_without_end() -> None:
    graph = Graph([NODE])
    for _ in range(MAX_DEPTH):
        graph = Graph([graph])
    with pytest.raises(ValueError, match=f"child graphs more than {MAX_DEPTH} deep"):
        Graph([graph])


def test_bodies_do_not_grow_without_end() -> None:
    chain = Graph([NODE] * 100, edges=[(k, k + 1) for k in range(99)])
    loop = Conditional(chain, times=1_000)
    assert len(Graph([loop]).launches) == 100_000
    with pytest.raises(ValueError, match="1100000 nodes with those of child graphs"):
        Graph([loop] * 11)
    square = Graph([NODE] * 1_001)
    with pytest.raises(ValueError, match="more than 1000000 edges"):
        Graph([square, square], edges=[(0, 1)])


def test_predictions_say_that_conditional_nodes_were_not_measured() -> None:
    program = Sequence([Graph([NODE, Conditional(Graph([NODE]))], edges=[(0, 1)]).launch(0)])
    assert "conditional nodes" in predict(program, "rtx3090").assumed_rules
    plain = Sequence([Graph([NODE, Graph([NODE])], edges=[(0, 1)]).launch(0)])
    assert "conditional nodes" not in predict(plain, "rtx3090").assumed_rules


def test_all_launches_wait_behind_a_decision_that_finds_no_sm() -> None:
    loop = Graph([Conditional(Graph([NODE]), times=1)])
    for carveout, waits in ((None, True), (100, False)):
        filling = Launch(132, 32, 32, stream=0, duration=300 * US, carveout=carveout)
        urgent = Launch(1, 32, 32, stream=2, priority=-5, duration=US)
        program = Sequence([filling, loop.launch(1), urgent])
        trace = predict(program, "h200", issue_times=[0, 1e-5, 2e-5])
        starts_ns = [int(rows.start_ns.min()) for rows in trace if rows.start_ns is not None]
        assert [start > 300_000 for start in starts_ns] == [False, waits, waits]
