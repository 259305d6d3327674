"""Does the real GPU launch in every way as the launcher means it to?"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb
from tbsched.launcher.observe import Gpu
from tbsched.program.sequence import Event

pytestmark = pytest.mark.tbsched_gpu

# A clock that is read on two SMs, and what a launch takes.
NEAR_NS = 20_000
LONG = 0.002  # seconds


def run(blocks: int = 1, seconds: float = LONG, **others: object) -> tb.Launch:
    return tb.Launch(blocks, 32, 16, duration=seconds, **others)  # type: ignore[arg-type]


def observed(gpu: Gpu, *events: Event) -> tb.Trace:
    return gpu.observe(tb.Sequence(events))


def starts(trace: tb.Trace) -> list[int]:
    return [int(placement.start_ns.min()) for placement in trace]  # type: ignore[union-attr]


def ends(trace: tb.Trace) -> list[int]:
    return [int(placement.end_ns.max()) for placement in trace]  # type: ignore[union-attr]


def dependent(gpu: Gpu) -> None:
    if gpu.info.details["compute_capability"] < "9.0":
        pytest.skip("no programmatic dependent launches")


def parts(**split: int | bool) -> list[tb.Partition]:
    groups, rest = tb.split_sms("h200", **split)  # type: ignore[arg-type]
    return [*groups, rest] if rest else [*groups]


def free(gpu: Gpu) -> None:
    begin = time.monotonic()
    assert observed(gpu, tb.Launch(gpu.info.sms, 1024, 32))[0].placed == gpu.info.sms
    assert time.monotonic() - begin < 1


# Partitions.


@pytest.mark.parametrize(
    "split",
    [
        {"min_sms": 8},
        {"min_sms": 24, "max_cluster": True},
        {"min_sms": 20, "groups": 3, "ignore_coscheduling": True},
        {"min_sms": 64, "groups": 1},
    ],
)
def test_blocks_stay_in_their_partitions(hopper: Gpu, split: dict[str, int | bool]) -> None:
    found = parts(**split)
    launches = [tb.Launch(len(part), 1024, 32, partition=part) for part in found]
    for launch, placement in zip(launches, observed(hopper, *launches), strict=True):
        assert launch.partition is not None
        assert sorted(placement.smid.tolist()) == [*launch.partition.sms]


def test_a_partition_holds_what_the_driver_says(hopper: Gpu) -> None:
    part = parts(min_sms=16)[2]
    launch = tb.Launch(1, 128, 72, 20_000, carveout=100, partition=part)
    resident = hopper._gpu.resident(launch)
    full = replace(launch, blocks=resident * len(part) + 1)
    assert observed(hopper, full)[0].placed == resident * len(part)


def test_clusters_that_a_partition_never_holds_are_refused(hopper: Gpu) -> None:
    part = parts(min_sms=20, ignore_coscheduling=True)[0]
    for cluster in (2, 4, 8, 16):
        launch = tb.Launch(cluster, 32, 16, cluster=cluster, partition=part)
        try:
            trace = observed(hopper, launch)
        except ValueError as error:
            print(f"clusters of {cluster}: {error}")
            assert cluster > 2
        else:
            assert trace[0].placed == cluster


def test_what_waits_in_one_partition_leaves_the_others_alone(hopper: Gpu) -> None:
    first, second, *_ = parts(min_sms=32)
    full = tb.Launch(3 * len(first), 1024, 32, partition=first)
    trace = observed(hopper, full, tb.Launch(len(second), 1024, 32, partition=second))
    assert [placement.placed for placement in trace] == [2 * len(first), len(second)]


def test_streams_of_partitions_wait_for_events(hopper: Gpu) -> None:
    first, second, *_ = parts(min_sms=64)
    trace = observed(
        hopper,
        run(stream=0, partition=first),
        tb.RecordEvent(0, 0),
        tb.WaitEvent(0, 1),
        run(stream=1, partition=second),
        tb.RecordEvent(1, 1),
        tb.WaitEvent(1, 2),
        run(stream=2),
        run(stream=3, partition=second),
    )
    assert starts(trace)[1] >= ends(trace)[0]
    assert starts(trace)[2] >= ends(trace)[1]
    assert trace.concurrent(0, 3)


def test_more_partitions_than_are_kept(hopper: Gpu) -> None:
    begin = time.monotonic()
    for min_sms in range(2, 132, 2):
        part = parts(min_sms=min_sms, ignore_coscheduling=True)[0]
        trace = observed(hopper, tb.Launch(len(part), 1024, 32, partition=part))
        assert sorted(trace[0].smid.tolist()) == [*part.sms]
    print(f"{(time.monotonic() - begin) / 65 * 1e3:.1f} ms for a partition and a launch in it")


def test_the_legacy_stream_leaves_partitions_alone(hopper: Gpu) -> None:
    part = parts(min_sms=64)[0]
    trace = observed(
        hopper,
        run(stream="legacy"),
        run(stream=1, partition=part, non_blocking=True),
        run(stream="legacy"),
    )
    assert trace.concurrent(0, 1)


# Cooperative launches, streams and priorities.


def test_a_cooperative_launch_is_all_or_nothing(gpu: Gpu) -> None:
    one = tb.Launch(1, 1024, 32)
    most = gpu._gpu.resident(one) * gpu.info.sms
    together = replace(one, blocks=most, cooperative=True)
    begin = time.monotonic()
    trace = observed(gpu, one, together, tb.Release(0))
    print(f"{(time.monotonic() - begin) * 1e3:.1f} ms; {trace[1].placed} blocks before the release")
    assert trace[1].placed == 0
    assert trace[1].final_smid is not None
    assert (trace[1].final_smid >= 0).all()
    with pytest.raises(ValueError, match=r"Launch\.cooperative: .* holds at most"):
        observed(gpu, replace(together, blocks=most + 1))


def test_a_cooperative_launch_in_a_partition(hopper: Gpu) -> None:
    part = parts(min_sms=32)[1]
    together = tb.Launch(2 * len(part), 1024, 32, cooperative=True, partition=part)
    assert observed(hopper, together)[0].placed == together.blocks
    with pytest.raises(ValueError, match=r"Launch\.cooperative: .* the partition of 32 SMs"):
        observed(hopper, replace(together, blocks=2 * len(part) + 1))


def test_cooperative_clusters(hopper: Gpu) -> None:
    launch = tb.Launch(4, 1024, 32, cluster=4)
    most = 4 * hopper._gpu.resident(launch)
    together = replace(launch, blocks=most, cooperative=True)
    assert observed(hopper, together)[0].placed == most
    with pytest.raises(ValueError, match=rf"holds at most {most} "):
        observed(hopper, replace(together, blocks=most + 4))


def test_non_blocking_streams_leave_the_legacy_stream_alone(gpu: Gpu) -> None:
    trace = observed(
        gpu,
        run(stream=1, non_blocking=True),
        run(stream="legacy"),
        run(stream=2, non_blocking=True),
        run(stream=3),
    )
    assert trace.concurrent(0, 1)
    assert trace.concurrent(1, 2)
    assert starts(trace)[3] >= ends(trace)[1]


def test_all_levels_of_priority_are_told_apart(gpu: Gpu) -> None:
    full = tb.Launch(2 * gpu.info.sms, 1024, 32, duration=LONG)
    with pytest.raises(ValueError, match=r"Launch\.priority: -100 is outside") as refusal:
        observed(gpu, replace(full, priority=-100))
    least = int(str(refusal.value).split("outside ")[1].split("..")[0])
    levels = [*range(least + 1, 1), least][::-1]
    trace = observed(gpu, full, *(replace(full, priority=level) for level in levels))
    found = [levels[k] for k in np.argsort(starts(trace)[1:])]
    print(f"priorities {least}..0 start in the order {found}")
    assert found == sorted(levels)


# Dependent launches.


def test_a_dependent_launch_starts_when_all_blocks_have_triggered(gpu: Gpu) -> None:
    dependent(gpu)
    for threads in (32, 33, 1024):
        for trigger in (0.0, 0.0005, 0.0015):
            primary = tb.Launch(gpu.info.sms, threads, 32, stream=0, duration=LONG, trigger=trigger)
            trace = observed(gpu, primary, run(stream=0, programmatic=True))
            late = starts(trace)[1] - starts(trace)[0]
            print(f"{threads} threads: {trigger * 1e6:.0f} us: starts {late / 1e3:.1f} us later")
            assert trigger * 1e9 - 1000 <= late < trigger * 1e9 + 200_000


def test_one_block_that_has_not_triggered_is_waited_for(gpu: Gpu) -> None:
    dependent(gpu)
    durations = (LONG, 0.5 * LONG)
    primary = tb.Launch(2, 64, 32, stream=0, duration=durations, trigger=0.75 * LONG)
    trace = observed(gpu, primary, run(stream=0, programmatic=True))
    late = starts(trace)[1] - starts(trace)[0]
    assert 0.75 * LONG * 1e9 - 1000 <= late < 0.9 * LONG * 1e9


def test_without_a_trigger_a_dependent_launch_waits_for_the_end(gpu: Gpu) -> None:
    dependent(gpu)
    for primary in (run(4, stream=0), run(4, stream=0, trigger=2 * LONG)):
        trace = observed(gpu, primary, run(stream=0, programmatic=True))
        assert starts(trace)[1] >= ends(trace)[0] - 1000


def test_a_block_waits_for_its_primary_and_then_runs_the_rest(gpu: Gpu) -> None:
    dependent(gpu)
    primary = run(8, stream=0, trigger=0.0)
    waits = run(8, 0.001, stream=0, programmatic=True, memory_wait=0.0004)
    trace = observed(gpu, primary, waits)
    end_ns = trace[1].end_ns
    assert end_ns is not None
    after = end_ns - ends(trace)[0]
    print(f"ends {after.min() / 1e3:.1f} to {after.max() / 1e3:.1f} us after the primary")
    assert starts(trace)[1] < ends(trace)[0]
    assert after.min() >= 600_000 - 1000
    assert after.max() < 700_000


def test_a_chain_of_three(gpu: Gpu) -> None:
    dependent(gpu)
    for trigger in (0.0, 0.0006):
        chain = run(stream=0, programmatic=True, trigger=trigger, memory_wait=0.0003, seconds=0.001)
        trace = observed(gpu, run(stream=0, trigger=0.0), chain, run(stream=0, programmatic=True))
        late = starts(trace)[2] - ends(trace)[0]
        print(
            f"trigger {trigger * 1e6:.0f} us: the third starts {late / 1e3:.1f} us after the first"
        )
        assert (late < 0) is (trigger < 0.0003)


def test_the_dependent_probe_is_patched_alike(gpu: Gpu) -> None:
    dependent(gpu)
    for registers in (16, 40, 200):
        launch = tb.Launch(1, 128, registers, 0, 512, duration=1e-5, stream=0, trigger=0.0)
        assert gpu._gpu.kernel_size(launch) == (registers, 512)
        assert observed(gpu, launch)[0].placed == 1


def test_an_event_happens_when_all_blocks_have_started(gpu: Gpu) -> None:
    fits = run(gpu.info.sms, stream=0, completion_event=0)
    trace = observed(gpu, fits, tb.WaitEvent(0, 1), run(stream=1))
    print(f"{(starts(trace)[1] - starts(trace)[0]) / 1e3:.1f} us after the first start")
    assert trace.concurrent(0, 1)
    resident = gpu._gpu.resident(tb.Launch(1, 1024, 32)) * gpu.info.sms
    one_more = tb.Launch(resident + 1, 1024, 32, stream=0, duration=LONG, completion_event=0)
    trace = observed(gpu, one_more, tb.WaitEvent(0, 1), run(stream=1))
    assert starts(trace)[1] >= np.sort(trace[0].start_ns)[-1] - NEAR_NS  # type: ignore[arg-type]


# Graphs.


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


# Whatever happens, blocks leave.


def long_running(gpu: Gpu, way: str) -> tb.Sequence:
    full = tb.Launch(2 * gpu.info.sms, 1024, 32, duration=50.0, stream=0)
    if way == "dependent":
        dependent(gpu)
        waits = run(4, 50.0, stream=0, programmatic=True, trigger=0.0, memory_wait=0.0)
        return tb.Sequence([run(4, 50.0, stream=0, trigger=0.0), waits, waits, full])
    if way == "graph":
        nodes = [replace(full, stream=None)] * 4
        graph = tb.Graph(nodes, [(0, 1), (1, 2), (1, 3)])
        return tb.Sequence([graph.launch(0), graph.launch(0), graph.launch(1)])
    if way == "cooperative":
        return tb.Sequence([run(seconds=50.0), replace(full, cooperative=True)] * 2)
    part = parts(min_sms=64)[0]
    launch = tb.Launch(len(part), 1024, 32, duration=50.0, partition=part, stream=1)
    return tb.Sequence(
        [full, launch, replace(launch, completion_event=1), tb.WaitEvent(1, 0), full]
    )


@pytest.mark.parametrize("how", ["deadline", "interrupt"])
@pytest.mark.parametrize("way", ["dependent", "graph", "cooperative", "partition"])
def test_blocks_are_ended(hopper: Gpu, way: str, how: str) -> None:
    seq = long_running(hopper, way)
    begin = time.monotonic()
    if how == "deadline":
        with pytest.raises(tb.DeadlineExceeded, match="has left"):
            hopper.observe(seq, deadline=0.3)
    else:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            hopper.observe(seq)
    print(f"{time.monotonic() - begin:.2f} s")
    assert time.monotonic() - begin < 2
    free(hopper)


def test_a_held_cooperative_launch_that_waits_is_ended(gpu: Gpu) -> None:
    one = tb.Launch(1, 1024, 32)
    most = gpu._gpu.resident(one) * gpu.info.sms
    seq = tb.Sequence([one, replace(one, blocks=most, cooperative=True), one])
    with pytest.raises(tb.DeadlineExceeded):
        gpu.observe(seq, settle=5.0, deadline=0.3)
    free(gpu)
