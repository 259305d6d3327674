"""Launches in partitions, and launches that want all their blocks at once."""

from __future__ import annotations

from typing import Any

import pytest

from helpers import KB, final, gpu, last, launch, released, run, smids
from tbsched.hardware.catalogue import device
from tbsched.prediction.predict import policies
from tbsched.program.partition import Partition
from tbsched.program.sequence import Launch

FOUR = gpu(4)  # SMs 0, 2, 1, 3 are preferred in this order; each takes 48 warps
LOW, HIGH, MIDDLE = Partition((0, 1)), Partition((2, 3)), Partition((1, 2))
H200 = device("h200")


def full(blocks: int = 1, **rest: Any) -> Launch:
    """Blocks of which two do not fit one SM."""
    return launch(blocks, warps=25, **rest)


# -- where blocks go ------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [row.name for row in policies()])
def test_blocks_stay_within_their_partition(policy: str) -> None:
    trace = run(FOUR, launch(9, partition=HIGH), full(3, partition=LOW), policy=policy)
    assert set(smids(trace)[0]) <= {2, 3}
    assert sorted(smids(trace)[1]) == [-1, 0, 1]


def test_partitions_that_overlap_share_room() -> None:
    assert smids(run(FOUR, full(2, partition=LOW), full(2, partition=MIDDLE))) == [[0, 1], [2, -1]]


def test_a_partition_of_all_sms_is_the_whole_gpu() -> None:
    everything = Partition(tuple(range(132)))
    for blocks, cluster in ((300, 1), (132, 4)):
        of_all, plain = (
            Launch(blocks, 256, 32, cluster=cluster, partition=partition)
            for partition in (everything, None)
        )
        assert smids(run(H200, of_all, of_all)) == smids(run(H200, plain, plain))


def test_each_sm_has_its_configuration_in_whatever_partition() -> None:
    """The first block configures the SMs of its own partition alone."""
    first = Launch(64, 64, 16, partition=Partition(tuple(range(64))))
    behind = Launch(68, 64, 16, 3 * 1024, partition=Partition(tuple(range(64, 132))))
    assert last(H200, first, behind).placed == 68


def test_room_outside_of_the_partition_is_none() -> None:
    trace = run(FOUR, launch(partition=LOW))
    assert trace.capacities is not None
    (rooms,) = trace.capacities()
    assert (rooms.blocks > 0).tolist() == [True, True, False, False]
    assert rooms.limiter[2:] == ("partition", "partition")


# -- what holds up what ---------------------------------------------------------------------------


def test_a_launch_that_waits_holds_up_others_on_its_own_sms_alone() -> None:
    waiting = full(3, partition=LOW)
    trace = run(FOUR, waiting, launch(2, partition=HIGH), launch(9, partition=MIDDLE))
    assert smids(trace) == [[0, 1, -1], [2, 3], [2] * 9]
    assert last(FOUR, waiting, launch(partition=LOW)).limiter == "queue"
    assert last(gpu(4, launch_order="one_line"), waiting, launch(partition=HIGH)).placed == 0


def test_a_launch_on_the_whole_gpu_takes_what_others_do_not_hold() -> None:
    trace = run(FOUR, full(3, partition=LOW), full(4), launch(partition=HIGH))
    assert smids(trace)[1] == [2, 3, -1, -1]
    assert trace[2].limiter == "queue"  # the whole GPU waits: it holds up all


def test_a_launch_of_another_partition_gets_its_room_when_a_holder_has_gone_in() -> None:
    low = [full(1, partition=LOW) for _ in range(2)]
    trace = run(FOUR, *low, *low, full(1, partition=MIDDLE), full(1), *released(0, 1, 2, 3))
    assert [row[0] for row in final(trace)] == [0, 1, 0, 1, 2, 3]


def test_what_waits_for_local_memory_holds_up_all_partitions() -> None:
    grows = launch(local_memory=4096, partition=LOW)
    assert last(FOUR, launch(partition=HIGH), grows).limiter == "local_memory"
    assert last(FOUR, launch(partition=HIGH), grows, launch(partition=HIGH)).limiter == "queue"


def test_one_that_ends_by_itself_lets_in_the_next_of_its_partition() -> None:
    first = full(2, duration=1e-3, partition=LOW)
    waits = full(2, duration=1e-3, partition=LOW)
    other = launch(2, duration=1e-3, partition=HIGH)
    timed = run(FOUR, first, waits, other)
    assert timed.waits is not None
    assert [(w["launch"], w["behind"], w["cause"]) for w in timed.waits] == [(1, -1, "warps")]
    starts = [placement.start_ns.min() for placement in timed if placement.start_ns is not None]
    assert starts[2] < starts[1]


# -- what is refused ------------------------------------------------------------------------------


def test_a_partition_of_other_sms_is_refused() -> None:
    with pytest.raises(ValueError, match=r"launch 0: partition: SM 4 is outside 0\.\.3, the SMs "):
        run(FOUR, launch(partition=Partition((3, 4))))


# -- all blocks at once ---------------------------------------------------------------------------


def test_a_cooperative_launch_that_an_idle_gpu_does_not_hold_is_refused() -> None:
    assert last(FOUR, full(4, cooperative=True)).placed == 4
    with pytest.raises(ValueError, match=r"cooperative: .* an idle .* holds 4; got 5"):
        run(FOUR, full(5, cooperative=True))
    with pytest.raises(ValueError, match=r"cooperative: .* this partition of .* holds 2; got 3"):
        run(FOUR, full(3, cooperative=True, partition=LOW))
    with pytest.raises(ValueError, match="holds 120; got 128"):
        run(H200, Launch(128, 1024, 64, cluster=4, cooperative=True))


def test_a_cooperative_launch_waits_until_all_its_blocks_fit() -> None:
    trace = run(FOUR, full(1), full(4, cooperative=True), full(1), *released(0))
    assert smids(trace)[1] == [-1] * 4
    assert (trace[1].limiter, trace[2].limiter) == ("cooperative", "queue")
    assert final(trace)[1] == [0, 2, 1, 3]
    assert last(FOUR, full(4), full(1, cooperative=True)).limiter == "warps"


def test_a_cooperative_launch_counts_each_gap_of_contiguous_memory() -> None:
    gaps = gpu(shared_memory="contiguous")
    part = launch(shared_memory=30 * KB)
    both = launch(2, shared_memory=30 * KB, cooperative=True)
    trace = run(gaps, part, part, part, *released(0, 2), both)
    assert trace.capacities is not None
    assert trace.capacities()[3].blocks.tolist() == [1]  # of the largest gap
    assert smids(trace)[3] == [0, 0]
