"""Graphs that record events, wait for them and allocate memory, on a driver that emulates a GPU."""

from __future__ import annotations

import pytest

import tbsched as tb
from helpers import Fake
from launcher.test_observe_timed import end, start
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.usefixtures("punctual")


def run(seconds: float = 0.005, **others: object) -> tb.Launch:
    return tb.Launch(2, 32, 32, duration=seconds, **others)  # type: ignore[arg-type]


def test_a_stream_waits_for_the_node_that_records(gpu: Gpu) -> None:
    graph = tb.Graph([run(), tb.RecordEvent(0), run(0.05)], edges=[(0, 1), (0, 2)])
    events = [graph.launch(0), tb.WaitEvent(0, 1), run(stream=1)]
    trace = gpu.observe(tb.Sequence(events))
    assert end(trace, 0) <= start(trace, 2) < end(trace, 1)


def test_a_node_waits_for_a_stream_and_for_another_graph(gpu: Gpu) -> None:
    records = tb.Graph([run(0.02), tb.RecordEvent(1)], edges=[(0, 1)])
    waits = tb.Graph(
        [run(), tb.WaitEvent(0), tb.WaitEvent(1), run(), run()], edges=[(1, 3), (2, 4)]
    )
    events = [run(0.05, stream=1), tb.RecordEvent(0, 1), records.launch(2), waits.launch(0)]
    trace = gpu.observe(tb.Sequence(events))
    assert start(trace, 2) < end(trace, 1)
    assert start(trace, 3) >= end(trace, 0)
    assert end(trace, 1) <= start(trace, 4) < end(trace, 0)


def test_a_graph_waits_for_its_launch_before_and_for_itself(gpu: Gpu) -> None:
    graph = tb.Graph(
        [tb.WaitEvent(0), run(), tb.RecordEvent(0), tb.WaitEvent(0), run()],
        edges=[(0, 1), (1, 2), (2, 3), (3, 4)],
    )
    trace = gpu.observe(tb.Sequence([graph.launch(0), graph.launch(0), tb.Synchronize(event=0)]))
    assert [placement.placed for placement in trace] == 4 * [2]
    for launch in range(3):
        assert start(trace, launch + 1) >= end(trace, launch)


def test_work_behind_a_graph_waits_for_its_last_wait(gpu: Gpu) -> None:
    graph = tb.Graph([run(), tb.WaitEvent(0)])
    events = [run(0.05, stream=1), tb.RecordEvent(0, 1), graph.launch(0), run(stream=0)]
    trace = gpu.observe(tb.Sequence(events))
    assert start(trace, 1) < end(trace, 0) <= start(trace, 2)


def test_memory_is_allocated_and_freed_in_each_launch(gpu: Gpu, knobs: Fake) -> None:
    graph = tb.Graph(
        [tb.MemAlloc("a", 64), run(), tb.MemFree("a"), run()], edges=[(0, 1), (1, 2), (2, 3)]
    )
    before = knobs["graph_allocations"]
    trace = gpu.observe(tb.Sequence([graph.launch(0), graph.launch(0)]))
    assert knobs["graph_allocations"] == before + 1
    for launch in range(3):
        assert start(trace, launch + 1) >= end(trace, launch)


def test_memory_is_freed_by_another_graph(gpu: Gpu) -> None:
    allocates = tb.Graph([tb.MemAlloc("a", 64), run()], edges=[(0, 1)])
    frees = tb.Graph([run(), tb.MemFree("a")], edges=[(0, 1)])
    trace = gpu.observe(tb.Sequence([allocates.launch(0), frees.launch(0)] * 3))
    assert [placement.placed for placement in trace] == 6 * [2]


def test_memory_that_is_not_freed_is_refused(gpu: Gpu) -> None:
    graph = tb.Graph([tb.MemAlloc("big", 64), run()])
    with pytest.raises(ValueError, match="'big' is still allocated at the end of the sequence"):
        gpu.observe(tb.Sequence([graph.launch(0)]))


def test_two_hosts_launch_a_graph_that_allocates(gpu: Gpu) -> None:
    graph = tb.Graph([tb.MemAlloc("a", 64), run(), tb.MemFree("a")], edges=[(0, 1), (1, 2)])
    launches = [graph.launch(host, host=host) for host in range(2)]
    assert [placement.placed for placement in gpu.observe(tb.Sequence(launches))] == [2, 2]
