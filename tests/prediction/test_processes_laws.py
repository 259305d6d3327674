"""What holds of all sets of processes: random ones, with copies, graphs, hosts and events."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
from tbsched.hardware.catalogue import ablations
from tbsched.program.events.graph import Node
from tbsched.program.events.transfers import CopyKind
from tbsched.program.sequence import Event

MB = 1 << 20
KINDS: tuple[CopyKind, ...] = ("h2d", "d2h", "d2d")
SEEDS = range(150)
NAMES = [
    f"{name}{less}" for name in tb.devices() for less in ("", *(f"-{row}" for row in ablations()))
]


def node(random: Random) -> Any:
    if random.random() < 0.3:
        size = random.choice([1, 64, MB, 256 * MB])
        return tb.Copy(size, random.choice(KINDS), random.choice([None, None, 0.0, 1e-4]))
    return kernel(random)


def kernel(random: Random, **rest: Any) -> tb.Launch:
    blocks, duration = random.choice([1, 3, 40, 300]), random.choice([0.0, 1e-6, 2e-4, 3e-3])
    return tb.Launch(blocks, random.choice([32, 256, 1024]), 16, duration=duration, **rest)


def event(random: Random) -> Event:
    at: dict[str, Any] = {"stream": random.choice([0, 1, "legacy"]), "host": random.choice([0, 1])}
    match random.randrange(10):
        case 0:
            nodes = [kernel(random), *[node(random) for _ in range(random.randrange(4))]]
            pairs = itertools.combinations(range(len(nodes)), 2)
            graph = tb.Graph(nodes, [pair for pair in pairs if random.random() < 0.4])
            return graph.launch(at["stream"], host=at["host"])
        case 1 | 2:
            size = random.choice([1, 64, MB, 64 * MB])
            if random.random() < 0.3:
                return tb.Memset(size, random.choice([None, 0.0]), **at)
            return tb.Copy(size, random.choice(KINDS), random.choice([None, 0.0]), **at)
        case 3:
            return tb.RecordEvent(0, **at)
        case 4:
            return tb.WaitEvent(0, **at)
        case 5:
            return tb.Synchronize(host=at["host"])
        case 6:
            return kernel(random, name="a", first_use=True, **at)
        case _:
            return kernel(random, programmatic=random.random() < 0.2, **at)


def programs(random: Random, count: int) -> list[tb.Sequence]:
    return [
        tb.Sequence([kernel(random, stream=0), *[event(random) for _ in range(6)]])
        for _ in range(count)
    ]


@pytest.mark.parametrize("device", ["h200", "h100"])
def test_nothing_ends_before_it_begins_or_runs_without_the_gpu(device: str) -> None:
    for seed in SEEDS:
        random = Random(f"{device} {seed}")
        found = tb.predict_processes(
            programs(random, random.choice([2, 2, 3])), device, host=random.choice([0.0, 1e-5])
        )
        check_times(found)


def check_times(found: tb.Processes) -> None:
    turns = found.turns
    assert (turns["begin_ns"] <= turns["end_ns"]).all()
    assert (turns["end_ns"][:-1] <= turns["begin_ns"][1:]).all()
    for process, trace in enumerate(found.traces):
        rows, waits, own = trace.timeline, trace.waits, turns[turns["process"] == process]
        assert (rows["start_ns"] <= rows["end_ns"]).all()
        turn = np.searchsorted(own["begin_ns"], rows["start_ns"], side="right") - 1
        assert (turn >= 0).all()
        assert (rows["start_ns"] <= own["end_ns"][turn]).all()
        assert waits is not None
        assert (waits["begin_ns"] <= waits["end_ns"]).all()
        check_waits(trace)
        if trace.transfer_ns is not None:
            begin, end = np.asarray(trace.transfer_ns).T
            assert (begin <= end).all()


@pytest.mark.parametrize("slice_ms", [0.2, 1])
def test_waits_of_a_launch_follow_each_other(slice_ms: float) -> None:
    """Also where a turn ends at the instant at which the cause changes."""
    for seed in SEEDS:
        random = Random(f"{slice_ms} {seed}")
        given = [tb.Sequence(even_kernels(random)) for _ in range(random.choice([2, 3]))]
        device = random.choice(["xavier", "h200"])
        for trace in tb.predict_processes(given, device, time_slice=slice_ms * 1e-3).traces:
            check_waits(trace)


def check_waits(trace: tb.Trace) -> None:
    """Each begins as the one before it ends, and the last ends as the last block starts."""
    assert trace.waits is not None
    for launch in np.unique(trace.waits["launch"]):
        own = trace.waits[trace.waits["launch"] == launch]
        last_ns = trace.timeline["start_ns"][trace.timeline["launch"] == launch].max()
        assert own["end_ns"].tolist() == [*own["begin_ns"][1:].tolist(), last_ns]


def even_kernels(random: Random) -> list[tb.Launch]:
    """Launches of whole multiples of 0.1 ms, of which some fill the GPU."""
    return [
        tb.Launch(
            random.choice([1, 8, 15, 132, 264]), random.choice([32, 1024]), 32,
            stream=random.choice([0, 1, 2]), duration=1e-4 * random.choice([1, 5, 10, 30, 50]),
        )
        for _ in range(random.randrange(1, 7))
    ]  # fmt: skip


def test_a_process_alone_is_predicted_as_without_others() -> None:
    for seed in SEEDS:
        (program,) = programs(Random(seed), 1)
        alone = tb.predict(program, "h200", host=1e-6)
        (found,) = tb.predict_processes([program], "h200", host=1e-6).traces
        assert np.array_equal(found.timeline, alone.timeline)
        assert np.array_equal(found.waits, alone.waits)  # type: ignore[arg-type]
        assert np.array_equal(found.transfer_ns, alone.transfer_ns)  # type: ignore[arg-type]


def test_a_copy_of_no_time_neither_ends_too_soon_nor_stops_its_engine() -> None:
    (trace,) = tb.predict_processes(
        [tb.Sequence([tb.Copy(1, "d2h", stream=6), tb.Copy(64, "d2h", stream=0)])], "h200"
    ).traces
    assert trace.transfer_ns is not None
    assert (np.asarray(trace.transfer_ns) == [[5_200, 5_200], [7_200, 7_201]]).all()
    copy = tb.Copy(256 * MB, "d2h")
    nodes: list[Node] = [tb.Copy(1, "d2h", 0.0), copy, tb.Launch(1, 32, 16, duration=1e-6), copy]
    graph = tb.Graph(nodes, [(0, 2), (0, 3), (1, 3), (2, 3)])
    many = tb.Sequence([graph.launch(stream=0), graph.launch(stream=1)])
    long = tb.Sequence([tb.Launch(1, 32, 16, stream=0, duration=50e-3)])
    found = tb.predict_processes([many, long], "h200").traces[0].transfer_ns
    assert found is not None
    assert (np.asarray(found)[:, 1] < 60_000_000).all()


@settings(deadline=None, max_examples=examples(400), derandomize=True)
@given(name=st.sampled_from(NAMES), seed=st.integers(0, 2**32), count=st.integers(1, 3))
def test_laws_hold_on_every_name_that_is_shipped(name: str, seed: int, count: int) -> None:
    random = Random(seed)
    given = programs(random, count)
    host = random.choice([0.0, 1e-5])
    spec = tb.device(name)
    traces = [tb.predict(program, name, host=host) for program in given]
    for trace in traces:
        check_capacity(trace, spec)
        check_order(trace)
        assert (np.diff(trace.transfer_ns) >= 0).all()  # type: ignore[arg-type]
    if not spec.time_slice_ns:  # several processes need one
        return
    found = tb.predict_processes(given, name, host=host)
    check_times(found)
    if count == 1:
        assert np.array_equal(found.traces[0].timeline, traces[0].timeline)
        assert np.array_equal(found.traces[0].transfer_ns, traces[0].transfer_ns)  # type: ignore[arg-type]


def check_capacity(trace: tb.Trace, spec: tb.DeviceSpec) -> None:
    """No SM ever holds more blocks or warps than it has room for."""
    rows = trace.timeline
    rows = rows[rows["start_ns"] < rows["end_ns"]]
    warps = np.array([-(-launch.threads // 32) for launch in trace.sequence.launches])
    own = warps[rows["launch"]]
    at = np.concatenate([rows["start_ns"], rows["end_ns"]])
    sms, leaves = np.tile(rows["sm"], 2), np.repeat([0, 1], len(rows))
    order = np.lexsort([1 - leaves, at, sms])  # who leaves makes room in the same instant
    for most, each in ((spec.blocks_per_sm, np.ones_like(own)), (spec.warps_per_sm, own)):
        held = np.concatenate([each, -each])[order].cumsum()
        assert held.max(initial=0) <= most


def check_order(trace: tb.Trace) -> None:
    """Launches of a thread in a stream follow each other, unless they are programmatic."""
    ends: dict[tuple[object, int], int] = {}
    number = 0
    for event in trace.sequence:
        first, number = number, number + len(event.launches)
        if not isinstance(event, tb.Launch):
            continue
        rows = trace.timeline[trace.timeline["launch"] == first]
        if not event.programmatic:
            assert rows["start_ns"].min() >= ends.get((event.stream, event.host), 0)
        ends[event.stream, event.host] = int(rows["end_ns"].max())
