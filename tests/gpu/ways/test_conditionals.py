"""Does the real GPU run the bodies of conditional nodes as the launcher means it to?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tbsched as tb
from gpu.ways.launching import ends, observed, starts
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu

US = 1e-6
# From the end of a kernel to what a decision lets run; and what a kernel takes to leave, and to be
# called on a clock of 1 us.
DECIDED_NS = (2_500, 12_000)


def run(blocks: int = 1, seconds: float = 50 * US, **others: object) -> tb.Launch:
    return tb.Launch(blocks, 32, 32, duration=seconds, **others)  # type: ignore[arg-type]


def around(*body: tb.Launch, times: int, edges: tuple[tuple[int, int], ...] = ()) -> tb.Graph:
    loop = tb.Conditional(tb.Graph(body, edges), times)
    return tb.Graph([run(), loop, run()], edges=[(0, 1), (1, 2)])


@pytest.mark.parametrize("times", [0, 1, 2, 10])
def test_a_body_runs_so_many_times(gpu: Gpu, times: int) -> None:
    trace = observed(gpu, around(run(8), times=times).launch(0))
    assert [placement.placed for placement in trace] == [1, *times * [8], 1]
    gaps = np.array(starts(trace)[1:]) - np.array(ends(trace)[:-1])
    print(f"{times} runs: {gaps / 1e3} us from the end of a kernel to the next start")
    assert (gaps > DECIDED_NS[0]).all()
    assert (gaps < DECIDED_NS[1]).all()


def test_each_run_of_a_body_has_records_in_each_launch(gpu: Gpu) -> None:
    body = [run(132), run(4), run(7)]
    graph = around(*body, times=20, edges=((0, 1),))
    trace = observed(gpu, graph.launch(0), graph.launch(0), graph.launch(1))
    once = [1, *20 * [132, 4, 7], 1]
    assert [placement.placed for placement in trace] == 3 * once
    begin, end = starts(trace), ends(trace)
    for first in range(0, len(trace), len(once)):
        runs = [range(first + 1 + 3 * number, first + 4 + 3 * number) for number in range(20)]
        for body_launches in runs:
            assert begin[body_launches[1]] >= end[body_launches[0]]
        for earlier, later in pairwise(runs):
            assert min(begin[k] for k in later) >= max(end[k] for k in earlier)
        if first > 0:
            assert begin[first] >= end[first - 1]


def test_a_body_takes_no_more_than_it_asks_for(hopper: Gpu) -> None:
    """As many blocks at once as of a kernel of its size, which a called function could enlarge."""
    each = hopper.info.sms
    for registers, threads, most in ((40, 128, 12), (32, 1024, 2), (24, 64, 32)):
        launch = tb.Launch(most * each, threads, registers, duration=2e-3)
        trace = observed(hopper, around(launch, times=2).launch(0))
        for placement in trace[1:3]:
            assert placement.start_ns is not None
            spread = np.ptp(placement.start_ns)
            print(f"{registers} registers: {most} blocks per SM start within {spread / 1e3} us")
            assert spread < 1e6
            assert (np.bincount(placement.smid, minlength=each) == most).all()


def test_bodies_have_transfers_clusters_and_local_memory(hopper: Gpu) -> None:
    nodes = [
        tb.Launch(8, 64, 32, cluster=4, duration=20 * US),
        tb.Copy(1 << 16, "h2d"),
        tb.Memset(1 << 16),
        tb.Launch(8, 64, 32, local_memory=4096, duration=20 * US),
    ]
    body = tb.Graph(nodes, [(0, 1), (1, 2), (2, 3)])
    trace = observed(hopper, tb.Graph([tb.Conditional(body, 5)]).launch(0))
    assert [placement.placed for placement in trace] == 10 * [8]
    assert (np.diff(starts(trace)) > 0).all()


def test_conditional_nodes_run_at_once(gpu: Gpu) -> None:
    loops = [tb.Conditional(tb.Graph([run(blocks)]), times=5) for blocks in (3, 5)]
    graph = tb.Graph([run(), *loops], edges=[(0, 1), (0, 2)])
    trace = observed(gpu, graph.launch(0), tb.Launch(4, 32, 32, stream=1, duration=1e-3))
    assert [placement.placed for placement in trace] == [1, *5 * [3], *5 * [5], 4]
    assert trace.concurrent(1, 6)
    assert trace.concurrent(1, 11)


def test_a_predicted_loop_is_near(hopper: Gpu) -> None:
    graph = around(run(16), run(4, 20 * US), times=10, edges=((0, 1),))
    program = tb.Sequence([graph.launch(0)])
    seen, expected = (
        np.array(starts(each)) for each in (hopper.observe(program), tb.predict(program, "h200"))
    )
    error = (seen - seen[0]) - (expected - expected[0])
    print(f"starts differ by {error / 1e3} us")
    assert abs(error).max() < 0.1 * (expected[-1] - expected[0])
