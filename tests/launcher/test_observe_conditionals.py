"""Graphs with conditional nodes, on a driver that emulates a GPU of four SMs."""

from __future__ import annotations

from itertools import pairwise

import pytest

import tbsched as tb
from helpers import Fake
from launcher.test_observe_timed import SMS, end, start
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.usefixtures("punctual")


def run(blocks: int = 1, seconds: float = 0.005, **others: object) -> tb.Launch:
    """A kernel of a body: the probe needs 24 registers there."""
    return tb.Launch(blocks, 32, 32, duration=seconds, **others)  # type: ignore[arg-type]


def observed(gpu: Gpu, *graphs: tb.Graph, **options: bool) -> tb.Trace:
    return gpu.observe(tb.Sequence([graph.launch(0) for graph in graphs]), **options)


def around(*body: object, times: int, edges: tuple[tuple[int, int], ...] = ()) -> tb.Graph:
    """A graph with a conditional node between two kernels."""
    loop = tb.Conditional(tb.Graph(body, edges), times)  # type: ignore[arg-type]
    return tb.Graph([run(), loop, run()], edges=[(0, 1), (1, 2)])


@pytest.mark.parametrize("times", [0, 1, 2, 5])
def test_a_body_runs_so_many_times_one_after_the_other(gpu: Gpu, times: int) -> None:
    trace = observed(gpu, around(run(3), times=times))
    assert [placement.placed for placement in trace] == [1, *times * [3], 1]
    for launch in range(times + 1):
        assert start(trace, launch + 1) >= end(trace, launch)


def test_kernels_of_a_body_have_their_edges_and_records_in_each_run(gpu: Gpu) -> None:
    body = [run(2), tb.Copy(64, "d2d"), run(5), run(1, 0.02)]
    trace = observed(gpu, around(*body, times=3, edges=((0, 1), (1, 2))))
    assert [placement.placed for placement in trace] == [1, *3 * [2, 5, 1], 1]
    for first in (1, 4, 7):
        assert start(trace, first + 1) >= end(trace, first)
        assert start(trace, first + 2) < end(trace, first)
        assert start(trace, first + 3) >= max(end(trace, first + 1), end(trace, first + 2))


def test_a_graph_that_is_launched_again_goes_on_with_its_records(gpu: Gpu) -> None:
    graph, other = around(run(2), run(4), times=3), around(run(3), times=2)
    trace = observed(gpu, graph, other, graph)
    once = [1, *3 * [2, 4], 1]
    assert [placement.placed for placement in trace] == [*once, 1, 3, 3, 1, *once]
    order = [0, 1, 3, 5, 7, 8, 9, 10, 11, 12, 13, 15, 17, 19]
    for earlier, later in pairwise(order):
        assert start(trace, later) >= end(trace, earlier)


def test_each_block_of_a_body_has_its_duration_in_each_run(gpu: Gpu) -> None:
    durations = (0.001, 0.02, 0.0)
    trace = observed(gpu, around(tb.Launch(3, 32, 32, duration=durations), times=2))
    for placement in trace[1:3]:
        assert placement.start_ns is not None
        assert placement.end_ns is not None
        stayed = placement.end_ns - placement.start_ns
        assert (stayed >= [1e6 - 64, 2e7 - 64, 0]).all()


def test_warp_slots_of_bodies(gpu: Gpu) -> None:
    graph = around(tb.Launch(2, 80, 32, duration=0.001), times=2)
    for placement in observed(gpu, graph, warp_slots=True)[1:3]:
        assert placement.warp_slots is not None
        assert placement.warp_slots.tolist() == [[0, 1, 2]] * 2


def test_conditional_nodes_beside_each_other_and_in_child_graphs(gpu: Gpu) -> None:
    one, other = (tb.Conditional(tb.Graph([run(blocks)]), times=2) for blocks in (2, 3))
    child = tb.Graph([run(), one], edges=[(0, 1)])
    graph = tb.Graph([child, other, run(4)], edges=[(0, 2), (1, 2)])
    trace = observed(gpu, graph)
    assert [placement.placed for placement in trace] == [1, 2, 2, 3, 3, 4]
    assert start(trace, 1) >= end(trace, 0)
    assert start(trace, 3) < end(trace, 1)
    assert start(trace, 5) >= max(end(trace, 2), end(trace, 4))


def test_bodies_in_bodies_run_as_often_as_they_should(gpu: Gpu) -> None:
    inner = tb.Conditional(tb.Graph([run(3), run(2)], [(0, 1)]), times=2)
    once = tb.Conditional(tb.Graph([run(4)]), times=1)
    never = tb.Conditional(tb.Graph([run(5)]), times=0)
    chain = [(part, part + 1) for part in range(3)]
    graph = around(run(1), inner, never, once, times=3, edges=tuple(chain))
    once_through = [1, 3, 2, 3, 2, 4]
    for launches in (1, 2):
        trace = observed(gpu, *launches * [graph])
        placed = [placement.placed for placement in trace]
        assert placed == launches * [1, *3 * once_through, 1]
        for earlier, later in pairwise(range(len(placed))):
            assert start(trace, later) >= end(trace, earlier)


def test_a_kernel_behind_a_loop_decides_that_it_runs_again(gpu: Gpu) -> None:
    inner = tb.Conditional(tb.Graph([run(3)]), times=2)
    graph = around(inner, run(1), times=3, edges=((0, 1),))
    assert [placement.placed for placement in observed(gpu, graph)] == [1, *3 * [3, 3, 1], 1]


def test_loops_three_deep_and_beside_each_other(gpu: Gpu) -> None:
    deepest = tb.Conditional(tb.Graph([run(4)]), times=2)
    middle = [
        tb.Conditional(tb.Graph([run(blocks), deepest], [(0, 1)]), times=times)
        for blocks, times in ((2, 2), (3, 3))
    ]
    graph = around(run(1), *middle, times=2, edges=((0, 1), (0, 2)))
    turn = [1, *2 * [2, 4, 4], *3 * [3, 4, 4]]
    trace = observed(gpu, graph, graph)
    assert [placement.placed for placement in trace] == 2 * [1, *2 * turn, 1]


def test_a_loop_that_is_too_long_ends_with_its_run(gpu: Gpu, knobs: Fake) -> None:
    with pytest.raises(tb.DeadlineExceeded):
        gpu.observe(tb.Sequence([around(run(4, 0.05), times=50).launch(0)]), deadline=0.1)
    assert observed(gpu, around(run(SMS), times=2))[2].placed == SMS


LOOP = tb.Conditional(tb.Graph([run()]), times=2)
BEHIND = [(0, part) for part in range(1, 6)]
PART = tb.Partition([0, 1])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (tb.Conditional(tb.Graph([run(), LOOP]), 2), "no Launch that comes before or behind it"),
        (tb.Conditional(tb.Graph([LOOP]), 2), "has no Launch of its own to decide that"),
        (tb.Conditional(tb.Graph([run(), *5 * [LOOP]], BEHIND), 2), "there is free to decide that"),
        (tb.Conditional(tb.Graph([run(partition=PART)])), r"Launch\.partition: a node in the body"),
        (tb.Conditional(tb.Graph([tb.Launch(1, 32, 16, duration=0.1)])), r"itself needs 24"),
    ],
)
def test_what_a_body_cannot_have_on_a_gpu_is_refused(
    gpu: Gpu, part: tb.Conditional, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        observed(gpu, tb.Graph([part]))


def test_nodes_of_a_body_meet_nobody(gpu: Gpu) -> None:
    with pytest.raises(ValueError, match="launch 1: a node in the body of a Conditional meets no"):
        tb.meet(tb.Sequence([around(run(), times=2).launch(0)]), gpu=gpu)


def test_a_body_that_differs_from_run_to_run_is_refused(gpu: Gpu) -> None:
    graph = tb.Graph([LOOP])
    changed = graph.with_nodes([run(), run(2)])
    with pytest.raises(ValueError, match="its nodes differ from run to run"):
        observed(gpu, changed)


def test_two_hosts_do_not_launch_a_graph_with_a_conditional(gpu: Gpu) -> None:
    graph = around(run(2), times=2)
    launches = [graph.launch(host, host=host) for host in range(2)]
    with pytest.raises(ValueError, match=r"GraphLaunch\.host: hosts 0 and 1 launch one graph"):
        gpu.observe(tb.Sequence(launches))


def test_two_hosts_launch_a_graph_of_kernels(gpu: Gpu) -> None:
    graph = tb.Graph([run(2), run(3)])
    launches = [graph.launch(host, host=host) for host in range(2)]
    trace = gpu.observe(tb.Sequence(launches * 3))
    assert [placement.placed for placement in trace] == [2, 3] * 6
