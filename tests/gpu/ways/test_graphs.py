"""Does the real GPU run graphs as the launcher means it to?"""

from __future__ import annotations

from dataclasses import replace

import pytest

import tbsched as tb
from gpu.ways.launching import LONG, ends, observed, parts, run, starts
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu


def test_nodes_wait_for_those_before_them(gpu: Gpu) -> None:
    graph = tb.Graph([run()] * 4, [(3, 0), (3, 1), (1, 2)])
    trace = observed(gpu, run(stream=0), graph.launch(0), run(stream=0))
    begin, end = starts(trace), ends(trace)
    assert begin[4] >= end[0]
    assert min(begin[1], begin[2]) >= end[4]
    assert trace.concurrent(1, 2)
    assert begin[3] >= end[2]
    assert begin[5] >= max(end[1], end[3])


def test_a_graph_twice_in_a_stream_and_in_two(gpu: Gpu) -> None:
    graph = tb.Graph([run(3), run(5)])
    trace = observed(gpu, graph.launch(0), graph.launch(0), graph.launch(1))
    assert [placement.placed for placement in trace] == [3, 5] * 3
    assert min(starts(trace)[2:4]) >= max(ends(trace)[:2])
    assert trace.concurrent(0, 4)
    issued = trace.issue_times
    assert issued is not None
    assert issued[0] == issued[1] <= issued[2] == issued[3]


def test_copies_and_memsets_take_their_time(gpu: Gpu) -> None:
    for transfer, least_ns in (
        (tb.Copy(1 << 26, "h2d"), 1e5),
        (tb.Copy(1 << 26, "d2h"), 1e5),
        (tb.Copy(1 << 26, "d2d"), 1e4),
        (tb.Memset(1 << 26), 5e3),
    ):
        graph = tb.Graph([run(), transfer, run()], [(0, 1), (1, 2)])
        trace = observed(gpu, graph.launch())
        print(f"{transfer}: {starts(trace)[2] - ends(trace)[1]} ns between two launches")
        assert starts(trace)[2] - ends(trace)[1] > least_ns


def test_nodes_have_their_own_attributes(gpu: Gpu) -> None:
    """Carveouts decide how many blocks of some shared memory an SM holds."""
    blocks = 32 * gpu.info.sms
    nodes = [
        tb.Launch(blocks, 32, 16, 8192, carveout=carveout, duration=LONG)
        for carveout in (25, 100, 50)
    ]
    alone = [observed(gpu, node)[0] for node in nodes]
    graph = tb.Graph(nodes, [(0, 1), (1, 2)])
    for before, now in zip(alone, observed(gpu, graph.launch()), strict=True):
        first = [
            int((placement.start_ns - placement.start_ns.min() < LONG * 5e8).sum())  # type: ignore[union-attr]
            for placement in (before, now)
        ]
        print(f"{first} blocks in the first wave, alone and in the graph")
        assert first[0] == first[1]


def test_priorities_of_nodes(gpu: Gpu) -> None:
    full = tb.Launch(2 * gpu.info.sms, 1024, 32, duration=LONG)
    graph = tb.Graph([full, replace(full, priority=-1), replace(full, priority=-5)])
    begin = starts(observed(gpu, full, graph.launch(1)))
    assert begin[3] < begin[2] < begin[1]


def test_cooperative_nodes_and_clusters(hopper: Gpu) -> None:
    full = tb.Launch(2 * hopper.info.sms, 1024, 32, duration=LONG)
    nodes = [replace(full, cooperative=True), replace(full, blocks=16, cluster=16)]
    trace = observed(hopper, run(), tb.Graph(nodes).launch(1))
    assert starts(trace)[1] >= ends(trace)[0]
    with pytest.raises(ValueError, match=r"launch 0: Launch\.cooperative"):
        observed(hopper, tb.Graph([replace(nodes[0], blocks=2 * hopper.info.sms + 1)]).launch())


def test_nodes_in_partitions(hopper: Gpu) -> None:
    first, second, *_ = parts(min_sms=64)
    nodes = [
        tb.Launch(len(part), 1024, 32, duration=LONG, partition=part) for part in (first, second)
    ]
    trace = observed(hopper, tb.Graph([*nodes, nodes[0]], [(0, 2)]).launch(0))
    for placement, part in zip(trace, (first, second, first), strict=True):
        assert sorted(placement.smid.tolist()) == [*part.sms]
