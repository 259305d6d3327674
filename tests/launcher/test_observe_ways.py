"""Every way to launch, against a driver that emulates a GPU of four SMs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from helpers import Fake, run_on_fake
from tbsched.launcher.observe import Gpu
from tbsched.program.event_table import LAUNCH, EventTable
from tbsched.program.sequence import Event

pytest.importorskip("tbsched._launcher", reason="built without nvcc")

pytestmark = pytest.mark.usefixtures("punctual")

SMS = 4
# A thread of a busy machine plays the GPU: what lasts a millisecond there may last longer.
SOON = 0.001
PATIENCE = 10.0  # seconds for blocks that do start: it only passes if they do not


def group(sms: tuple[int, ...], number: int | None, min_sms: int, **others: object) -> tb.Partition:
    split = tb.SmSplit(min_sms, **others)  # type: ignore[arg-type]
    return tb.Partition(sms, split=split, group=number)


# As the fake driver deals them.
FIRST, SECOND = group((0, 1), 0, 2), group((2, 3), 1, 2)
LEFT_OVER = group((3,), None, 3)
FULL = tb.Launch(2 * SMS, 1024, 32)


def run(blocks: int = 1, seconds: float = SOON, **others: object) -> tb.Launch:
    return tb.Launch(blocks, 32, 16, duration=seconds, **others)  # type: ignore[arg-type]


def observed(gpu: Gpu, *events: Event) -> tb.Trace:
    return gpu.observe(tb.Sequence(events))


def start(trace: tb.Trace, launch: int) -> int:
    start_ns = trace[launch].start_ns
    assert start_ns is not None
    return int(start_ns.min())


def end(trace: tb.Trace, launch: int) -> int:
    end_ns = trace[launch].end_ns
    assert end_ns is not None
    return int(end_ns.max())


def sms_of(trace: tb.Trace, launch: int) -> set[int]:
    return set(trace[launch].smid.tolist())


def test_blocks_stay_in_their_partitions(gpu: Gpu) -> None:
    everywhere = tb.Launch(SMS, 32, 16)
    parts = [tb.Launch(6, 32, 16, partition=part) for part in (FIRST, SECOND, LEFT_OVER)]
    trace = observed(gpu, everywhere, *parts)
    assert [sms_of(trace, k) for k in range(4)] == [{0, 1, 2, 3}, {0, 1}, {2, 3}, {3}]


def test_rows_of_a_table_name_partitions_and_cooperation(gpu: Gpu) -> None:
    # Kind, blocks, threads, registers, shared and local memory, carveout, cluster, priority.
    launch = (LAUNCH, 2, 32, 16, 0, 0, -1, 1, 0)
    rows = [(*launch, 1, 0), (*launch, 0, 1), (*launch, -1, 0)]
    table = EventTable(np.array(rows, np.int32), np.array([0, 3]), (FIRST, SECOND))
    ((found,),) = gpu.observe_tables([table])
    assert isinstance(found, np.ndarray)
    assert [{*found[k : k + 2].tolist()} for k in (0, 2)] == [{2, 3}, {0, 1}]


def test_what_waits_in_a_partition_holds_up_only_its_sms(gpu: Gpu) -> None:
    full = tb.Launch(5, 1024, 32, partition=FIRST)
    trace = observed(gpu, full, tb.Launch(1, 32, 16, partition=SECOND), tb.Release(0))
    assert [placement.placed for placement in trace] == [4, 1]
    assert trace[0].final_smid is not None
    assert set(trace[0].final_smid.tolist()) == {0, 1}


def test_green_contexts_and_their_streams_are_kept(gpu: Gpu, knobs: Fake) -> None:
    timed = tb.Sequence([run(partition=FIRST, stream=1), run(partition=SECOND)])
    held = tb.Sequence([tb.Launch(1, 32, 16, partition=part) for part in (FIRST, SECOND, FIRST)])

    def made() -> int:
        return knobs["green_contexts"] + knobs["streams"]

    for seq in (timed, held):
        gpu.observe(seq)
        before = made()
        gpu.observe(seq)
        assert made() == before


def test_many_partitions_are_not_all_kept(gpu: Gpu, knobs: Fake) -> None:
    for turn in range(2):
        # Whatever is destroyed is used no more, nor taken for what is made in its place.
        for asked in range(1, 70):
            part = group((2 * turn, 2 * turn + 1), turn, 2, groups=asked + 1)
            trace = observed(gpu, tb.Launch(2, 32, 16, carveout=asked, partition=part))
            assert (sms_of(trace, 0), knobs["carveout"]) == ({*part.sms}, asked)
        assert 0 < knobs.live()["green contexts"] <= 65


def test_a_kernel_is_loaded_once_for_all_partitions_and_carveouts(gpu: Gpu, knobs: Fake) -> None:
    before = knobs["libraries"], knobs["functions"]
    for part in (FIRST, None, SECOND, LEFT_OVER, FIRST):
        for carveout, shared_memory in ((50, 5000), (70, 200_000), (None, 0)):
            observed(gpu, tb.Launch(1, 32, 78, shared_memory, carveout=carveout, partition=part))
            assert knobs["carveout"] == (-1 if carveout is None else carveout)
    assert (knobs["libraries"], knobs["functions"]) == (before[0] + 1, before[1] + 4)


def test_a_carveout_set_in_one_context_is_not_that_of_another(gpu: Gpu, knobs: Fake) -> None:
    """The driver has one for all, so each launch sets its own."""
    for carveout, part in ((100, FIRST), (0, None), (100, FIRST), (50, SECOND), (0, None)):
        observed(gpu, tb.Launch(1, 32, 78, carveout=carveout, partition=part))
        assert knobs["carveout"] == carveout


def test_what_is_launched_again_costs_few_driver_calls(gpu: Gpu, knobs: Fake) -> None:
    launches = [tb.Launch(1, 32, 78, 5000, carveout=c, partition=p) for p, c in
                ((None, 50), (FIRST, 60), (FIRST, 60), (None, 50), (FIRST, 70))]  # fmt: skip
    launches.append(tb.Launch(2, 32, 78, cluster=2, carveout=70, partition=FIRST, cooperative=True))
    seq = tb.Sequence(launches)
    # All of it fits. If a busy machine seems to say otherwise, the launcher starts from the usual
    # state the next time, which takes a launch more.
    gpu.observe(seq, settle=PATIENCE)
    knobs.fail(at=0)
    gpu.observe(seq, settle=PATIENCE)
    # The thread's context and, for four launches, the partition's.
    expected = {"cuLaunchKernelEx": 6, "cuFuncSetAttribute": 6, "cuCtxPushCurrent_v2": 1 + 4 + 1}
    expected["cuCtxPopCurrent_v2"] = expected["cuCtxPushCurrent_v2"]
    assert {call: knobs.calls(call) for call in expected} == expected
    assert knobs.calls() == sum(expected.values()) + knobs.calls("cuStreamQuery")


def test_the_carveout_of_a_node_is_one_of_its_kernel(gpu: Gpu, knobs: Fake) -> None:
    for carveout in (55, 65):
        node = tb.Launch(1, 32, 16, carveout=carveout, duration=0.0, partition=FIRST)
        observed(gpu, tb.Graph([node]).launch())
        assert knobs["carveout"] == carveout


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (
            tb.Launch(1, 32, 16, partition=tb.Partition((0, 1))),
            r"Launch\.partition: Partition\.split: None: .* take one of those that split_sms",
        ),
        (
            tb.Launch(1, 32, 16, partition=group((0, 1), 2, 2)),
            r"Partition\.group: 2: the driver makes 2 groups in the split of min_sms=2$",
        ),
        (
            tb.Launch(1, 32, 16, partition=group((0,), 1, 1, groups=1)),
            r"Partition\.group: 1: the driver makes 1 groups .* min_sms=1, groups=1$",
        ),
        (
            tb.Launch(1, 32, 16, partition=group((0,), None, 2)),
            r"Partition\.group: None: the split of min_sms=2 leaves no SM over",
        ),
        (
            tb.Launch(1, 32, 16, partition=group((0, 1, 2), 0, 2)),
            r"Partition\.sms: 3 SMs, but the driver gives 2 in the split .* another GPU\?",
        ),
        (
            tb.Launch(1, 32, 16, partition=group((0,), 0, 5, max_cluster=True)),
            r"Partition\.split: the driver refuses the split of min_sms=5, max_cluster=True: "
            r"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION",
        ),
        (
            tb.Launch(8, 32, 16, cluster=8, partition=FIRST),
            r"cluster of 8 such blocks .* ever fits the partition of 2 SMs",
        ),
        (
            tb.Launch(9, 1024, 32, cooperative=True),
            r"Launch\.cooperative: 9 blocks .* never run at once: this GPU holds at most 8",
        ),
        (
            tb.Launch(5, 1024, 32, cooperative=True, partition=FIRST),
            r"Launch\.cooperative: 5 blocks .*: the partition of 2 SMs holds at most 4",
        ),
        (
            tb.Launch(10, 1024, 32, cluster=2, cooperative=True),
            r"Launch\.cooperative: 10 blocks .*: this GPU holds at most 8",
        ),
        (
            run(stream="legacy", partition=FIRST),
            r"Launch\.partition: the legacy stream is of the whole GPU",
        ),
        (run(trigger=60.1), r"Launch\.trigger: 60100000000 is outside 0\.\.60000000000 ns"),
        (run(memory_wait=60.1), r"Launch\.memory_wait: 60100000000 is outside"),
        (run(delay=1e-6), r"Launch\.delay: 1000 is outside 0\.\.0 ns"),
    ],
)
def test_what_cannot_be_launched_is_refused_before_any_launch(
    gpu: Gpu, knobs: Fake, launch: tb.Launch, message: str
) -> None:
    other = tb.Launch(1, 32, 16) if launch.duration is None else run()
    observed(gpu, tb.Launch(1, 32, 16))
    before = knobs["launches"]
    with pytest.raises(ValueError, match=message):
        observed(gpu, other, launch)
    assert knobs["launches"] <= before + 1  # which comes before every timed sequence


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"priority": -1}, {}, r"launch 1: Launch\.priority: 0 differs .* in stream 1"),
        ({"partition": FIRST}, {}, r"launch 1: Launch\.partition: it differs .* in stream 1"),
        ({"partition": FIRST}, {"partition": SECOND}, r"Launch\.partition: it differs"),
    ],
)
def test_launches_of_a_stream_agree(
    gpu: Gpu, first: dict[str, Any], second: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        observed(gpu, *(tb.Launch(1, 32, 16, stream=1, **each) for each in (first, second)))


def test_a_partition_beside_the_legacy_stream_needs_a_non_blocking_one(gpu: Gpu) -> None:
    legacy = run(stream="legacy")
    with pytest.raises(ValueError, match=r"launch 1: Launch\.non_blocking: False, but the legacy"):
        observed(gpu, legacy, run(partition=FIRST))
    trace = observed(gpu, legacy, run(partition=FIRST, non_blocking=True))
    assert trace.concurrent(0, 1)


def test_a_driver_without_green_contexts_is_told(fake: Path, tmp_path: Path) -> None:
    older = tmp_path / "libolder.so"
    older.write_bytes(fake.read_bytes().replace(b"\0cuGreenCtxStreamC", b"\0noGreenCtxStreamC"))
    code = (
        "import tbsched as tb\n"
        "print(tb.observe(tb.Sequence([tb.Launch(1, 32, 16)]))[0].placed)\n"
        "part = tb.Partition((0, 1), split=tb.SmSplit(2), group=0)\n"
        "tb.observe(tb.Sequence([tb.Launch(1, 32, 16, partition=part)]))\n"
    )
    done = run_on_fake(code, older)
    assert done.stdout.split() == ["1"]
    assert (
        "ValueError: Launch.partition: partitions need a CUDA driver of 12.5 or later; this one, "
        "of 13.0, has no cuGreenCtxStreamCreate"
    ) in done.stderr


def test_a_cooperative_launch_waits_until_all_its_blocks_fit(gpu: Gpu) -> None:
    some, all_at_once = tb.Launch(1, 1024, 32), tb.Launch(8, 1024, 32, cooperative=True)
    trace = observed(gpu, some, all_at_once, tb.Release(0))
    assert trace[1].placed == 0
    assert trace[1].final_smid is not None
    assert sorted(trace[1].final_smid.tolist()) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_non_blocking_streams_leave_the_legacy_stream_alone(gpu: Gpu) -> None:
    long = 0.02
    trace = observed(
        gpu,
        run(seconds=long, stream=1, non_blocking=True),
        run(seconds=long, stream="legacy"),
        run(seconds=long, stream=1, non_blocking=True),
        run(seconds=long, stream=2),
    )
    assert trace.concurrent(0, 1)
    assert start(trace, 3) >= end(trace, 1) - 1000


@pytest.mark.parametrize("priority", range(-5, 1))
def test_every_priority_of_the_driver_is_taken(gpu: Gpu, priority: int) -> None:
    trace = observed(gpu, run(1, 0.0, priority=priority), run(1, 0.0, stream=1, priority=priority))
    assert [placement.placed for placement in trace] == [1, 1]


def test_more_urgent_launches_take_room_first(gpu: Gpu) -> None:
    levels = [replace_priority(level) for level in (0, -4, -5, -1)]
    trace = observed(gpu, FULL_RUN, *levels)
    starts = [start(trace, k) for k in range(1, 5)]
    assert [starts.index(s) for s in sorted(starts)] == [2, 1, 3, 0]


# Long enough for all calls behind it on a busy machine.
FULL_RUN = tb.Launch(2 * SMS, 1024, 32, duration=0.02)


def replace_priority(level: int) -> tb.Launch:
    return tb.Launch(2 * SMS, 1024, 32, duration=SOON, priority=level)


LONG = 0.03


def test_a_dependent_launch_starts_when_all_blocks_have_triggered(gpu: Gpu) -> None:
    primary = tb.Launch(SMS, 32, 16, duration=LONG, stream=0, trigger=LONG / 3)
    trace = observed(gpu, primary, run(stream=0, programmatic=True), run(stream=0))
    late = start(trace, 1) - start(trace, 0)
    assert late >= LONG / 3 * 1e9 - 1000
    assert trace.concurrent(0, 1)
    assert start(trace, 2) >= end(trace, 0) - 1000


def test_a_block_that_does_not_trigger_does_so_when_it_leaves(gpu: Gpu) -> None:
    for primary in (run(stream=0), run(stream=0, trigger=1.0)):
        trace = observed(gpu, primary, run(stream=0, programmatic=True))
        assert start(trace, 1) >= end(trace, 0) - 1000


def test_a_dependent_launch_waits_for_the_end_of_its_primary(gpu: Gpu) -> None:
    primary = run(seconds=LONG, stream=0, trigger=0.0)
    dependent = run(seconds=0.01, stream=0, programmatic=True, memory_wait=0.005)
    trace = observed(gpu, primary, dependent)
    assert trace.concurrent(0, 1)
    assert end(trace, 1) - end(trace, 0) >= 0.005 * 1e9 - 1000
    assert start(trace, 1) < end(trace, 0)


def test_a_block_may_trigger_before_or_after_it_waits(gpu: Gpu) -> None:
    for trigger, third_starts_first in ((0.0, True), (0.002, False)):
        trace = observed(
            gpu,
            run(seconds=LONG, stream=0, trigger=0.0),
            run(stream=0, programmatic=True, trigger=trigger, memory_wait=SOON, seconds=0.003),
            run(stream=0, programmatic=True),
        )
        assert (start(trace, 2) < end(trace, 0)) is third_starts_first


def test_a_completion_event_happens_when_the_launch_has_its_turn(gpu: Gpu) -> None:
    """Not later, although blocks of it wait for room: so it is on the hardware."""
    more = tb.Launch(2 * SMS + 1, 1024, 32, duration=LONG, stream=0, completion_event=5)
    urgent = run(stream=1, priority=-1)
    trace = observed(gpu, run(stream=0), more, tb.WaitEvent(5, 1), urgent)
    assert start(trace, 2) >= end(trace, 0) - 1000
    assert start(trace, 2) < end(trace, 1)


def test_dependent_launches_that_wait_are_ended(gpu: Gpu) -> None:
    primary = run(SMS, 50.0, stream=0, trigger=0.0)
    waits = run(SMS, 50.0, stream=0, programmatic=True, trigger=0.0, memory_wait=0.0)
    with pytest.raises(tb.DeadlineExceeded, match="told to leave, and has left"):
        gpu.observe(tb.Sequence([primary, waits, waits]), deadline=0.1)
    assert observed(gpu, FULL)[0].placed == FULL.blocks


def test_dependent_launches_need_the_hardware(fake: Path) -> None:
    code = (
        "import tbsched as tb\n"
        "for field in ({'programmatic': True}, {'trigger': 0.0}, {'memory_wait': 0.0}):\n"
        "    try: tb.observe(tb.Sequence([tb.Launch(1, 32, 16, duration=1e-6, **field)]))\n"
        "    except ValueError as error: print(error)\n"
    )
    said = run_on_fake(code, fake, FAKE_ARCHITECTURE="89").stdout.splitlines()
    for field, line in zip(("programmatic", "trigger", "memory_wait"), said, strict=True):
        assert f"Launch.{field}: programmatic dependent launches need" in line
        assert line.endswith("9.0 or later; this GPU has 8.9")


def test_nodes_wait_for_those_before_them(gpu: Gpu) -> None:
    graph = tb.Graph([run(seconds=0.01)] * 3, [(2, 0)])
    trace = observed(gpu, run(stream=0), graph.launch(0), run(stream=0))
    assert start(trace, 3) >= end(trace, 0) - 1000
    assert trace.concurrent(2, 3)
    assert start(trace, 1) >= end(trace, 3) - 1000
    assert start(trace, 4) >= end(trace, 1) - 1000


def test_copies_and_memsets_come_between_the_nodes(gpu: Gpu, knobs: Fake) -> None:
    nodes = [
        run(seconds=0.01),
        *(tb.Copy(1 << 20, kind) for kind in ("h2d", "d2h", "d2d")),
        tb.Memset(8),
        run(),
    ]
    names = ("h2d", "d2h", "d2d", "memsets")
    before = [knobs[name] for name in names]
    graph = tb.Graph(nodes, [(k, k + 1) for k in range(5)])
    trace = observed(gpu, graph.launch(0), run(stream=0))
    assert [knobs[name] for name in names] == [count + 1 for count in before]
    assert start(trace, 1) >= end(trace, 0) - 1000
    assert start(trace, 2) >= end(trace, 1) - 1000


def test_a_graph_launched_again_has_records_of_its_own_each_time(gpu: Gpu) -> None:
    graph = tb.Graph([run(2), run(3)])
    trace = observed(gpu, graph.launch(0), graph.launch(1), graph.launch(0))
    assert [placement.placed for placement in trace] == [2, 3] * 3
    issued = trace.issue_times
    assert issued is not None
    assert issued[0] == issued[1] < issued[2] == issued[3] < issued[4] == issued[5]


def test_equal_graphs_are_one_and_wait_for_each_other(gpu: Gpu, knobs: Fake) -> None:
    """In whatever streams. One that differs runs beside them."""
    graph, equal = (tb.Graph([run(2, 0.01), run(3, 0.01)]) for _ in range(2))
    other = tb.Graph([run(2, 0.03), run(3, 0.01)])
    before = knobs["graphs"]
    knobs.fail(at=0)
    trace = observed(gpu, graph.launch(0), other.launch(1), equal.launch(2), graph.launch(3))
    assert knobs["graphs"] == before + 2
    assert knobs.calls("cuGraphExecKernelNodeSetParams_v2") == 2 * 2
    for earlier, later in (((0, 1), (4, 5)), ((4, 5), (6, 7))):
        last = max(end(trace, k) for k in earlier)
        assert min(start(trace, k) for k in later) >= last - 1000
    assert trace.concurrent(0, 2)
    assert trace.concurrent(2, 4)


def test_a_graph_that_runs_keeps_its_arguments(gpu: Gpu) -> None:
    graph = tb.Graph([run(SMS, 0.02), run(2, 0.01, partition=SECOND)], [(0, 1)])
    trace = observed(gpu, *[graph.launch(0)] * 3)
    assert [placement.placed for placement in trace] == [SMS, 2] * 3
    assert [sms_of(trace, k) for k in (1, 3, 5)] == [{2, 3}] * 3
    assert all(end(trace, k) <= start(trace, k + 1) + 1000 for k in range(5))


def test_nodes_have_priorities_partitions_and_cooperation(gpu: Gpu) -> None:
    nodes = [
        replace_priority(0),
        replace_priority(-3),
        tb.Launch(2, 32, 16, 2048, carveout=50, duration=SOON, partition=SECOND),
        tb.Launch(2 * SMS, 1024, 32, duration=SOON, cooperative=True, priority=-5),
    ]
    trace = observed(gpu, FULL_RUN, tb.Graph(nodes).launch(1))
    assert sms_of(trace, 3) == {2, 3}
    assert start(trace, 4) < start(trace, 2) < start(trace, 1)


def test_a_launch_behind_a_graph_in_its_stream_has_its_own_priority(gpu: Gpu) -> None:
    full = tb.Launch(2 * SMS, 1024, 32, duration=LONG)
    urgent = tb.Launch(2 * SMS, 1024, 32, duration=SOON, stream=1, priority=-5)
    graph = tb.Graph([run(seconds=0.0)])
    trace = observed(gpu, graph.launch(1), full, replace_priority(0), urgent)
    assert start(trace, 3) < start(trace, 2)


def test_nodes_of_other_carveouts_share_no_kernel(gpu: Gpu, knobs: Fake) -> None:
    nodes = [tb.Launch(1, 32, 79, carveout=k, duration=0.0) for k in (0, 50, 100)]
    before = knobs["libraries"]
    for graph in (tb.Graph(nodes), tb.Graph(nodes[:1])):
        observed(gpu, graph.launch())
    assert knobs["libraries"] == before + 3


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            tb.Graph([run(), tb.Launch(9, 1024, 32, duration=SOON, cooperative=True)]).launch(),
            r"launch 2: Launch\.cooperative: 9 blocks",
        ),
        (
            tb.Graph([run(partition=tb.Partition((0, 1)))]).launch(),
            r"Partition\.split: None",
        ),
    ],
)
def test_nodes_are_refused_like_launches(gpu: Gpu, event: tb.GraphLaunch, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        observed(gpu, run(), event)


def test_a_graph_under_way_is_ended(gpu: Gpu) -> None:
    node = run(SMS, 50.0)
    graph = tb.Graph([node] * 4, [(0, 1), (1, 2), (1, 3)])
    with pytest.raises(tb.DeadlineExceeded, match=r"launch 7: 0 of 4 .* has left"):
        gpu.observe(tb.Sequence([graph.launch(0), graph.launch(0)]), deadline=0.1)
    assert observed(gpu, FULL)[0].placed == FULL.blocks
