"""Does the real GPU run nodes of events and of memory, and bodies in bodies, as it should?"""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import pytest

import tbsched as tb
from gpu.ways.launching import ends, observed, starts
from tbsched.launcher.observe import Gpu
from tbsched.program.events.graph import Part

pytestmark = pytest.mark.tbsched_gpu

US = 1e-6


def run(blocks: int = 1, seconds: float = 50 * US, **others: object) -> tb.Launch:
    return tb.Launch(blocks, 32, 32, duration=seconds, **others)  # type: ignore[arg-type]


def chain(*nodes: Part) -> tb.Graph:
    return tb.Graph(nodes, itertools.pairwise(range(len(nodes))))


def gaps(trace: tb.Trace) -> list[float]:
    """From the end of each launch to the start of the next, in microseconds."""
    found = np.array(starts(trace)[1:]) - np.array(ends(trace)[:-1])
    return [round(gap / 1e3, 2) for gap in found.tolist()]


def test_a_stream_waits_for_the_node_that_records(gpu: Gpu) -> None:
    graph = tb.Graph([run(), tb.RecordEvent(0), run(seconds=1e-3)], edges=[(0, 1), (0, 2)])
    waits = [tb.WaitEvent(0, 1), run(stream=1)]
    trace = observed(gpu, graph.launch(0), *waits, graph.launch(0), *waits)
    begin, end = starts(trace), ends(trace)
    for first in (0, 3):
        late = begin[first + 2] - end[first]
        print(f"a stream goes on {late / 1e3} us after the end before the record")
        assert 0 <= late < 5e5
        assert begin[first + 2] < end[first + 1]


def test_a_node_waits_for_the_last_record_before_its_launch(gpu: Gpu) -> None:
    graph = tb.Graph([run(), tb.WaitEvent(0), run(), run()], edges=[(1, 2), (0, 3)])
    first, second = run(seconds=5e-4, stream=1), run(seconds=5e-4, stream=1)
    trace = observed(gpu, first, tb.RecordEvent(0, 1), second, graph.launch(0))
    begin, end = starts(trace), ends(trace)
    print(f"a node goes on {(begin[3] - end[0]) / 1e3} us after the end before the record")
    assert end[0] <= begin[3] < end[1]
    assert begin[2] < end[0]  # what has no edge to the wait does not wait
    assert begin[4] < end[0]
    never = observed(gpu, graph.launch(0))
    assert max(starts(never)) - min(starts(never)) < 5e5  # nothing was recorded


def test_a_record_counts_within_its_graph_and_for_the_next_launch(gpu: Gpu) -> None:
    inside = chain(run(), tb.RecordEvent(0), tb.WaitEvent(0), run())
    again = chain(tb.WaitEvent(1), run(), tb.RecordEvent(1))
    trace = observed(gpu, *[inside.launch(0)] * 3, *[again.launch(1)] * 3)
    begin, end = starts(trace), ends(trace)
    print(f"record and wait in between: {gaps(trace)[:5:2]} us")
    for one in (0, 1, 2, 3, 4, 6, 7):
        assert begin[one + 1] >= end[one]


def test_one_graph_waits_for_another_beside_it(gpu: Gpu) -> None:
    records = tb.Graph(
        [run(seconds=3e-4), tb.RecordEvent(2), run(seconds=1e-3)], edges=[(0, 1), (0, 2)]
    )
    waits = tb.Graph([tb.WaitEvent(2), run(), run()], edges=[(0, 1)])
    trace = observed(gpu, records.launch(0), waits.launch(1))
    begin, end = starts(trace), ends(trace)
    assert end[0] <= begin[2] < end[1]
    assert begin[3] < end[0]


@pytest.mark.parametrize("between", ["nothing", "record", "wait", "memory"])
def test_what_nodes_between_two_kernels_take(hopper: Gpu, between: str) -> None:
    nodes: dict[str, list[Part]] = {
        "nothing": [],
        "record": [tb.RecordEvent(0)],
        "wait": [tb.WaitEvent(0)],
        "memory": [tb.MemAlloc("a", 1 << 20), tb.MemFree("a")],
    }
    program = tb.Sequence([chain(run(), *nodes[between], run()).launch(0)] * 5)
    seen = [gaps(hopper.observe(program))[:9:2] for _ in range(3)]
    expected = gaps(tb.predict(program, "h200"))[:9:2]
    print(f"{between}: {seen} us between two kernels, predicted {expected}")
    for row in seen:
        assert min(row) > 0
        assert np.median(row) < np.median(expected) + 20


def test_memory_is_allocated_freed_and_used_again(gpu: Gpu) -> None:
    inside = chain(tb.MemAlloc("a", 1 << 20), run(4), tb.MemFree("a"), run(4))
    allocates = chain(tb.MemAlloc("b", 1 << 20), run(4))
    frees = chain(run(4), tb.MemFree("b"))
    across = [allocates.launch(0), frees.launch(0)] * 2
    trace = observed(gpu, *[inside.launch(0)] * 3, *across)
    assert [placement.placed for placement in trace] == 10 * [4]
    begin, end = starts(trace), ends(trace)
    for one, other in pairwise(range(10)):
        assert begin[other] >= end[one]


def around(*body: Part, times: int) -> tb.Graph:
    """Kernels around a loop whose body is a chain."""
    return chain(run(), tb.Conditional(chain(*body), times), run())


@pytest.mark.parametrize("inner_times", [0, 1, 2, 5])
def test_bodies_in_bodies_run_as_often_as_they_should(gpu: Gpu, inner_times: int) -> None:
    loop = tb.Conditional(chain(run(3), run(4)), inner_times)
    for body, times in (((run(5), loop), 4), ((loop, run(5)), 4), ((loop,), 1)):
        if not inner_times and body == (loop,):
            continue  # a graph without a launch is refused
        trace = observed(gpu, *[around(*body, times=times).launch(0)] * 3)
        inner = inner_times * [3, 4]
        turn = [5, *inner] if body[0] == run(5) else [*inner, 5] if len(body) > 1 else inner
        assert [placement.placed for placement in trace] == 3 * [1, *times * turn, 1]
        begin, end = starts(trace), ends(trace)
        for one, other in pairwise(range(len(begin))):
            assert begin[other] >= end[one]


def test_loops_three_deep_and_beside_each_other(gpu: Gpu) -> None:
    deepest = tb.Conditional(chain(run(4)), times=2)
    middle = [
        tb.Conditional(chain(run(blocks), deepest), times=times)
        for blocks, times in ((2, 2), (3, 3))
    ]
    body = tb.Graph([run(5), *middle], edges=[(0, 1), (0, 2)])
    graph = chain(run(), tb.Conditional(body, times=2), run())
    turn = [5, *2 * [2, 4, 4], *3 * [3, 4, 4]]
    trace = observed(gpu, graph.launch(0), graph.launch(0))
    assert [placement.placed for placement in trace] == 2 * [1, *2 * turn, 1]


def test_predicted_bodies_in_bodies_are_near(hopper: Gpu) -> None:
    inner = tb.Conditional(chain(run(16), run(4, 20 * US)), times=3)
    program = tb.Sequence([around(run(8), inner, times=3).launch(0)])
    seen, expected = (
        np.array(starts(each)) for each in (hopper.observe(program), tb.predict(program, "h200"))
    )
    error = (seen - seen[0]) - (expected - expected[0])
    print(f"starts differ by {error / 1e3} us")
    assert abs(error).max() < 0.1 * (expected[-1] - expected[0])
