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


def test_a_graph_launched_again_waits_for_itself(gpu: Gpu) -> None:
    """In whatever stream; another one does not."""
    graph, other = tb.Graph([run(3), run(5)]), tb.Graph([run(3), run(6)])
    seq = tb.Sequence([graph.launch(0), other.launch(1), graph.launch(2), graph.launch(0)])
    trace = gpu.observe(seq)
    assert [placement.placed for placement in trace] == [3, 5, 3, 6, 3, 5, 3, 5]
    begin, end, issued = starts(trace), ends(trace), trace.issue_times
    for earlier, later in ((0, 4), (4, 6)):
        gap = min(begin[later : later + 2]) - max(end[earlier : earlier + 2])
        print(f"starts {gap / 1e3:.2f} us after the last launch is over")
        assert 0 <= gap < LONG * 1e9 / 2
    assert trace.concurrent(0, 2)
    assert issued is not None
    print(f"issued at {[round(1e6 * time, 1) for time in issued[::2]]} us")
    # No call waits for the GPU.
    assert issued[0] == issued[1] < issued[2] < issued[4] == issued[5] < issued[6] < LONG / 2


def test_nodes_launched_again_keep_their_attributes(hopper: Gpu) -> None:
    """Cooperation, priorities, clusters, partitions and carveouts, with other arguments."""
    sms, part, spec = hopper.info.sms, parts(min_sms=64)[1], tb.device("h200")
    full = tb.Launch(2 * sms, 1024, 32, duration=LONG)
    cooperative = tb.Graph([run(), replace(full, cooperative=True)])
    urgent = tb.Graph([full, replace(full, priority=0), replace(full, priority=-5)])
    nodes = [
        replace(full, blocks=16, cluster=16),
        replace(full, blocks=len(part), partition=part),
        tb.Launch(32 * sms, 32, 16, 8192, carveout=25, duration=LONG),
    ]
    chain = tb.Graph(nodes, [(0, 1), (1, 2)])
    trace = observed(hopper, cooperative.launch(0), cooperative.launch(0))
    # A cooperative launch that fills the GPU runs alone, whichever root comes first.
    for one, other in ((0, 1), (2, 3)):
        assert not trace.concurrent(one, other)
    begin = starts(observed(hopper, urgent.launch(0), urgent.launch(0)))
    assert begin[2] < begin[1]
    # The first that comes, then the most urgent.
    assert begin[5] < max(begin[3:5])
    trace = observed(hopper, chain.launch(0), chain.launch(0))
    waves = []
    for clusters, inside, many in ((trace[k], trace[k + 1], trace[k + 2]) for k in (0, 3)):
        tpcs = {int(sm) // spec.sms_per_tpc for sm in clusters.smid}
        assert any(tpcs <= {*gpc} for gpc in spec.gpcs)
        assert {*inside.smid.tolist()} <= {*part.sms}
        assert many.start_ns is not None
        waves.append(int((many.start_ns - many.start_ns.min() < LONG * 1e9 / 2).sum()))
    print(f"first waves of {waves} blocks")
    assert waves[0] == waves[1] < 32 * sms


def test_copies_and_memsets_take_their_time(gpu: Gpu) -> None:
    for transfer, least_ns in (
        (tb.Copy(1 << 26, "h2d"), 1e5),
        (tb.Copy(1 << 26, "d2h"), 1e5),
        (tb.Copy(1 << 26, "d2d"), 1e4),
        (tb.Memset(1 << 26), 5e3),
    ):
        graph = tb.Graph([run(), transfer, run()], [(0, 1), (1, 2)])
        trace = observed(gpu, graph.launch())
        print(f"{transfer}: {starts(trace)[1] - ends(trace)[0]} ns between two launches")
        assert starts(trace)[1] - ends(trace)[0] > least_ns


@pytest.mark.parametrize("partition", [None, 1])
def test_nodes_have_their_own_attributes(hopper: Gpu, partition: int | None) -> None:
    """Carveouts decide how many blocks of some shared memory an SM holds."""
    part = None if partition is None else parts(min_sms=64)[partition]
    blocks = 32 * (hopper.info.sms if part is None else len(part))
    nodes = [
        tb.Launch(blocks, 32, 16, 8192, carveout=carveout, partition=part, duration=LONG)
        for carveout in (25, 100, 50)
    ]
    alone = [observed(hopper, node)[0] for node in nodes]
    graph = tb.Graph(nodes, [(0, 1), (1, 2)])
    for before, now in zip(alone, observed(hopper, graph.launch()), strict=True):
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
