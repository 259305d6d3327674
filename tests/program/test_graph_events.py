"""Nodes of graphs that record CUDA events, wait for them, and allocate and free memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import gpu
from tbsched.prediction.predict import predict
from tbsched.program.sequence import (
    Conditional,
    Graph,
    HostFunction,
    Launch,
    MemAlloc,
    MemFree,
    RecordEvent,
    Sequence,
    Synchronize,
    WaitEvent,
    with_launches,
)
from tbsched.views.sequences import sequence_columns

US = 1e-6
NODE = Launch(1, 32, 16, duration=10 * US)
GPU = gpu(sms=4)


def starts(*events: object, spec: object = GPU) -> list[int]:
    """When each launch starts, in microseconds."""
    trace = predict(Sequence(events), spec)  # type: ignore[arg-type]
    return [int(rows.start_ns.min()) // 1000 for rows in trace if rows.start_ns is not None]


def test_a_stream_waits_for_the_node_that_records_and_for_no_more() -> None:
    graph = Graph([NODE, RecordEvent(0), NODE], edges=[(0, 1), (0, 2)])
    behind = replace(NODE, stream=1)
    assert starts(graph.launch(0), WaitEvent(0, 1), behind) == [0, 10, 10]
    assert starts(graph.launch(0), behind) == [0, 10, 0]


def test_a_node_waits_for_the_last_record_before_its_graph_is_launched() -> None:
    graph = Graph([NODE, WaitEvent(0), NODE], edges=[(1, 2)])
    first, second = replace(NODE, stream=1), replace(NODE, stream=1)
    recorded = [first, RecordEvent(0, 1), second]
    assert starts(*recorded, graph.launch(0)) == [0, 10, 0, 10]
    assert starts(*recorded, RecordEvent(0, 1), graph.launch(0)) == [0, 10, 0, 20]
    assert starts(graph.launch(0), *recorded) == [0, 0, 0, 10]  # later ones do not count


def test_a_node_waits_for_a_record_of_its_own_graph_behind_it_or_of_the_launch_before() -> None:
    chain = Graph([NODE, RecordEvent(0), WaitEvent(0), NODE, NODE], edges=[(0, 1), (1, 2), (2, 3)])
    assert starts(chain.launch(0)) == [0, 10, 0]
    before = Graph([WaitEvent(0), NODE, RecordEvent(0)], edges=[(0, 1), (1, 2)])
    assert starts(before.launch(0), before.launch(0)) == [0, 10]
    other = replace(NODE, stream=1, duration=35 * US)
    assert starts(other, RecordEvent(0, 1), before.launch(0), WaitEvent(0, 2)) == [0, 35]


def test_one_graph_waits_for_the_record_of_another_beside_it() -> None:
    first = Graph([NODE, RecordEvent(7), NODE, NODE], edges=[(0, 1), (0, 2), (2, 3)])
    second = Graph([NODE, WaitEvent(7), NODE], edges=[(1, 2)])
    assert starts(first.launch(0), second.launch(1)) == [0, 10, 20, 0, 10]
    assert starts(first.launch(0), second.launch(1), Synchronize(event=7)) == [0, 10, 20, 0, 10]


def test_a_host_waits_for_a_node_that_records() -> None:
    graph = Graph([NODE, RecordEvent(0), replace(NODE, duration=50 * US)], edges=[(0, 1), (0, 2)])
    later = replace(NODE, stream=1)
    assert starts(graph.launch(0), Synchronize(event=0), later) == [0, 10, 10]


def test_work_behind_a_graph_waits_for_its_last_wait() -> None:
    other = replace(NODE, stream=1, duration=40 * US)
    graph = Graph([NODE, WaitEvent(0)])
    events = [other, RecordEvent(0, 1), graph.launch(0), replace(NODE, stream=0)]
    assert starts(*events) == [0, 0, 40]


def test_nodes_of_two_gpus_share_events() -> None:
    record = Graph([replace(NODE, duration=30 * US), RecordEvent(0)], edges=[(0, 1)])
    wait = Graph([WaitEvent(0), NODE], edges=[(0, 1)])
    program = Sequence([record.launch(0), wait.launch(0, gpu=1)])
    trace = predict(program, [GPU, GPU])
    assert trace[1].start_ns is not None
    assert trace[1].start_ns.tolist() == [30_000]


def test_times_of_nodes_that_record_and_wait_are_among_those_of_transfers() -> None:
    graph = Graph([NODE, RecordEvent(0), HostFunction(), WaitEvent(0)], edges=[(0, 1), (1, 3)])
    program = Sequence([graph.launch(0)])
    assert program.transfers == (RecordEvent(0), HostFunction(), WaitEvent(0))
    times = predict(program, GPU).transfer_ns
    assert times is not None
    assert times.tolist() == [[10_000, 10_000], [0, 0], [10_000, 10_000]]


def test_views_name_what_nodes_record_and_wait_for() -> None:
    graph = Graph([NODE, RecordEvent(0), WaitEvent(0), NODE], edges=[(0, 1), (1, 2), (2, 3)])
    for device in ("h200", "rtx3090"):
        trace = predict(Sequence([graph.launch(0)]), device)
        assert "wait event 1" in trace.explain(1)
        assert "event 0" in str(trace.sequence)
        assert trace._repr_html_()
    columns = sequence_columns(Sequence([graph.launch(0)]))
    assert columns["cuda_event"] == [None, 0, 0, None]
    assert columns["transfer"] == [None, 0, 1, None]


def test_a_measured_device_lets_nodes_wait_too() -> None:
    graph = Graph([NODE, RecordEvent(0), NODE], edges=[(0, 1), (1, 2)])
    waits = Graph([WaitEvent(0), NODE], edges=[(0, 1)])
    for device in ("h200", "xavier", "rtx3090"):
        trace = predict(Sequence([graph.launch(0), waits.launch(1)]), device)
        begin = trace.timeline["start_ns"].tolist()
        end = trace.timeline["end_ns"].tolist()
        assert begin[1] >= end[0]
        assert begin[2] >= end[0]


def test_memory_takes_no_time_and_keeps_the_order() -> None:
    parts = [NODE, MemAlloc("a", 64), MemFree("a"), NODE, NODE]
    graph = Graph(parts, edges=[(0, 1), (1, 2), (2, 3)])
    assert graph.edges == ((0, 1),)
    assert starts(graph.launch(0)) == [0, 10, 0]
    assert graph.memory == (MemAlloc("a", 64), MemFree("a"))
    assert graph.is_nested is False
    root = Graph([MemAlloc("a", 64), NODE, MemFree("a")], edges=[(0, 1), (1, 2)])
    assert root.edges == ()
    assert starts(root.launch(0), root.launch(0)) == [0, 10]


def test_memory_is_freed_by_a_later_graph() -> None:
    allocates, frees = Graph([MemAlloc("a", 64), NODE]), Graph([NODE, MemFree("a")])
    assert starts(*[allocates.launch(0), frees.launch(0)] * 2) == [0, 10, 20, 30]
    with pytest.raises(ValueError, match=r"events\[1\]: MemAlloc\.name: 'a' is allocated"):
        Sequence([allocates.launch(0)] * 2)
    with pytest.raises(ValueError, match=r"events\[0\]: MemFree\.name: 'a' is not allocated"):
        Sequence([frees.launch(0)])
    other = allocates.launch(0, gpu=1)
    assert len(Sequence([allocates.launch(0), other])) == 2


def test_graphs_come_back_from_json_and_from_source() -> None:
    parts = [
        MemAlloc("a b", 64), NODE, RecordEvent(3), WaitEvent(3), MemFree("a b"),
        Graph([NODE, WaitEvent(5), MemAlloc("in", 1), MemFree("in")], edges=[(2, 3)]),
        Conditional(Graph([NODE]), times=2),
    ]  # fmt: skip
    graph = Graph(parts, edges=[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    program = Sequence([graph.launch(0)])
    assert Sequence.from_json(program.to_json()) == program
    assert eval(repr(graph), globals()) == graph
    assert graph.with_nodes(graph.nodes) == graph
    longer = [replace(node, duration=1.0) for node in graph.launches]
    assert with_launches(program, longer).launches == tuple(longer)


LOOP = Graph([NODE, WaitEvent(0)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph([NODE, RecordEvent(0), WaitEvent(0)]), r"which is first of RecordEvent\(ev"),
        (lambda: Graph([NODE, RecordEvent(0), RecordEvent(0)]), r"nodes of the same CUDA event"),
        (lambda: Graph([NODE, MemAlloc("a", 1), MemFree("a")]), r"nodes of the same memory"),
        (
            lambda: Graph([NODE, MemFree("a"), MemAlloc("a", 1)], [(1, 2)]),
            r"got 'MemFree, MemAlloc'",
        ),
        (lambda: Graph([NODE, MemFree("a"), MemAlloc("a", 1)], [(2, 1)]), r"by a later node"),
        (lambda: Graph([NODE, *[MemAlloc("a", 1)] * 2], [(1, 2)]), r"at most once"),
        (
            lambda: Graph([NODE, RecordEvent(0, stream=1)]),
            r"\.stream: 1, but a node of a graph",
        ),
        (lambda: Sequence([RecordEvent(0)]), r"RecordEvent\.stream: None, which is only for nodes"),
        (lambda: Conditional(LOOP), r"a WaitEvent is in it, and CUDA allows none"),
        (lambda: Conditional(Graph([LOOP, NODE])), r"a WaitEvent is in it, and CUDA allows none"),
        (lambda: Conditional(Graph([MemAlloc("a", 1), NODE])), r"a MemAlloc is in it"),
        (lambda: MemAlloc("a", 0), r"MemAlloc\.bytes: 0 is outside"),
        (lambda: MemFree(3), r"MemFree\.name: text is needed, got 3"),
        (lambda: Graph([MemAlloc("a", 1)]), "no Launch among them"),
    ],
)
def test_what_says_nothing_or_what_cuda_does_not_take_is_refused(
    make: object, message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()  # type: ignore[operator]


def test_nodes_that_only_wait_need_no_order() -> None:
    assert len(Graph([NODE, WaitEvent(0), WaitEvent(0)]).nodes) == 3
    before = Graph([NODE, WaitEvent(0), WaitEvent(0), RecordEvent(0)], edges=[(1, 3), (2, 3)])
    assert starts(before.launch(0)) == [0]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph of kernels and of nodes of two events, those of each event in their order."""
    durations = st.sampled_from([0.0, 3 * US, 10 * US])
    marks = st.builds(RecordEvent, st.integers(0, 1)) | st.builds(WaitEvent, st.integers(0, 1))
    nodes = [NODE, *draw(st.lists(st.builds(replace, st.just(NODE), duration=durations) | marks))]
    edges = {
        (one, other)
        for other in range(len(nodes))
        for one in range(other)
        if (isinstance(nodes[one], RecordEvent | WaitEvent)
            and getattr(nodes[one], "event", None) == getattr(nodes[other], "event", -1))
        or draw(st.integers(0, 3)) == 0
    }  # fmt: skip
    return Graph(nodes, sorted(edges))


@given(st.lists(st.tuples(graphs(), st.integers(0, 2)), min_size=1, max_size=4), st.booleans())
def test_every_wait_ends_behind_the_last_record(
    launched: list[tuple[Graph, int]], is_measured: bool
) -> None:
    program = Sequence([graph.launch(stream) for graph, stream in launched])
    trace = predict(program, "h200" if is_measured else GPU)
    assert trace.transfer_ns is not None
    launches, others = iter(trace), iter(trace.transfer_ns.tolist())
    recorded: dict[int, int] = {}
    for graph, _ in launched:
        begin, end = {}, {}
        for number, node in enumerate(graph.nodes):
            if isinstance(node, Launch):
                placed = next(launches)
                assert placed.start_ns is not None
                assert placed.end_ns is not None
                begin[number], end[number] = placed.start_ns.min(), placed.end_ns.max()
            else:
                begin[number], end[number] = next(others)
            if isinstance(node, WaitEvent):
                assert begin[number] >= recorded.get(node.event, 0)
            elif isinstance(node, RecordEvent):
                recorded[node.event] = end[number]
        for one, other in graph.edges:
            assert begin[other] >= end[one]
