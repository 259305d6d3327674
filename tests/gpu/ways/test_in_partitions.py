"""Do blocks stay in the partitions that the launcher asks the driver for?"""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

import tbsched as tb
from gpu.ways.launching import ends, observed, parts, run, starts
from tbsched.launcher.observe import Gpu
from tbsched.program.sequence import Event

pytestmark = pytest.mark.tbsched_gpu


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


def test_carveouts_change_from_launch_to_launch_in_one_sequence(hopper: Gpu) -> None:
    """One kernel runs in two partitions and on the whole GPU in turn, with other carveouts."""
    first, second, *_ = parts(min_sms=32)
    places = (None, first, second)
    carveouts = (25, 100, 50, 100, None, 25)
    launches = []
    for turn in range(len(carveouts)):
        for place, part in enumerate(places):
            blocks = 32 * (hopper.info.sms if part is None else len(part))
            carveout = carveouts[(turn + place) % len(carveouts)]
            launches.append(tb.Launch(blocks, 32, 56, 8192, carveout=carveout, partition=part))
    alone = [observed(hopper, launch)[0].placed for launch in launches]
    events: list[Event] = []
    for number, launch in enumerate(launches):
        events += [launch, tb.Release(number)]
    found = [placement.placed for placement in observed(hopper, *events)]
    print(f"{found} blocks before the release")
    assert found == alone
    assert len({*found[:: len(places)]}) >= 3


def test_launches_in_a_partition_have_their_own_attributes(hopper: Gpu) -> None:
    """Shared memory and carveout, of one kernel that has run in the partition before."""
    part = parts(min_sms=16)[1]
    for size in (1024, 100_000, 8192, 200_000):
        for carveout in (None, 100, 50):
            launch = tb.Launch(1, 32, 56, size, carveout=carveout)
            try:
                alone = observed(hopper, replace(launch, blocks=32 * 132))[0].placed / 132
            except ValueError as error:
                print(error)
                continue
            full = replace(launch, blocks=32 * len(part), partition=part)
            found = observed(hopper, full)[0].placed / len(part)
            print(f"{size} bytes, carveout {carveout}: {found} blocks per SM, {alone} elsewhere")
            assert found == alone
