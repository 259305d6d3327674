"""What the proofs must not overlook: groups that they would call safe without a condition.

Most are stranded only after blocks of an outsider have left, which the proofs are to spare playing.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

import tbsched as tb
from helpers import KB, gpu, launch

FIRST, SECOND = tb.Partition((0,)), tb.Partition((1,))
ONE_LINE = replace(gpu(2, "h200"), launch_order="one_line", provenance={})
THREE_TPCS = gpu(6, "h200", gpcs=((0, 1, 2),), explicit_carveout_is_upper_bound=False)
LARGER = gpu(12, "h200", gpcs=((0, 2, 4), (1, 3)))
SMALLER = gpu(8, "h200", gpcs=((0, 1), (2,)))


def waiting_launch(partition: tb.Partition | None = None) -> list[tb.Launch]:
    """The last of them waits where the first one left before the second one configured the SM."""
    return [
        launch(1, carveout=100, partition=partition),
        launch(1, partition=partition),
        launch(1, shared_memory=102_400, partition=partition),
    ]


@pytest.mark.parametrize(
    ("spec", "launches"),
    [
        (gpu(1, "h200"), [*waiting_launch(), launch()]),
        (ONE_LINE, [*waiting_launch(FIRST), launch(partition=SECOND)]),
        (gpu(2, "h200"), [*waiting_launch(FIRST), launch(36)]),
        (gpu(2, "h200"), [*waiting_launch(FIRST), launch(6, 8), launch(1, 32, partition=SECOND)]),
    ],
    ids=[
        "it holds up what comes",
        "on other SMs, too",
        "the SMs that are left are not enough",
        "the next one crowds the SMs that are left",
    ],
)
def test_launch_that_waits_once_an_outsider_has_left(
    spec: tb.DeviceSpec, launches: list[tb.Launch]
) -> None:
    last = len(launches) - 1
    found = tb.coresident(launches, spec, groups=[[last]], after=[(0, 1)], fixes=False)
    assert (found.safe, found.stranded) == (False, last)


@pytest.mark.parametrize("sms", [2, 3])
def test_blocks_that_wait_take_other_sms_than_blocks_that_come_later(sms: int) -> None:
    """They take all SMs that the outsider leaves; those that come then take two of each."""
    last = tb.Partition((sms - 1,))
    others = tb.Partition(tuple(range(sms - 1)))
    launches = [
        tb.Launch(1, 512, 56, carveout=100, partition=last),
        tb.Launch(sms - 1, 1024, 40, carveout=100, partition=others),
        tb.Launch(sms, 512, 56, 100 * KB, carveout=100),
        tb.Launch(1, 32, 16, 130 * KB, carveout=100, priority=-1),
    ]
    found = tb.coresident(
        launches, gpu(sms, "h200"), groups=[[0, 3]], after=[(0, 1), (1, 2), (1, 3)], fixes=False
    )
    assert (found.safe, found.stranded) == (False, 3)


def test_clusters_seek_idle_sms_that_have_less_room() -> None:
    """An outsider left them idle. Where it stays, all SMs have as much room."""
    outsider = launch(4, carveout=100, partition=tb.Partition((2, 3, 4, 5)))
    member = launch(2, carveout=100, partition=tb.Partition((0, 1)))
    clusters = launch(16, shared_memory=26 * KB, carveout=20, cluster=4)
    found = tb.coresident(
        [outsider, member, clusters], THREE_TPCS, groups=[[1, 2]], after=[(1, 0), (0, 2)],
        fixes=False,
    )  # fmt: skip
    assert (found.safe, found.stranded) == (False, 2)


def test_what_leaves_just_before_a_launch_may_take_room_from_it() -> None:
    """An idle SM is configured for fewer blocks."""
    spec = replace(LARGER, mechanisms=THREE_TPCS.mechanisms)
    outsider = tb.Launch(6, 768, 16, 33 * KB, carveout=50, cluster=6)
    last = tb.Launch(48, 192, 16, 3 * KB, carveout=0)
    found = tb.coresident([outsider, last], spec, groups=[[1]], after=[(0, 1)], fixes=False)
    assert (found.safe, found.stranded) == (False, 1)


def test_sm_that_became_idle_has_less_room_than_before() -> None:
    spec = gpu(2, "h200", explicit_carveout_is_upper_bound=False)
    configures = launch(2, carveout=100)
    uneven = launch(4, 8, shared_memory=28 * KB, carveout=20)
    last = launch(2, 20, partition=SECOND)
    found = tb.coresident(
        [configures, uneven, last], spec, groups=[[2]], after=[(0, 1)], fixes=False
    )
    assert (found.safe, found.stranded) == (False, 2)


@pytest.mark.parametrize(
    ("spec", "launches"),
    [
        (gpu(2, "h200", lowest_gap_first=False), [
            launch(shared_memory=1 * KB, carveout=100, partition=FIRST),
            launch(8, shared_memory=18_944, carveout=100),
            launch(2, shared_memory=14 * KB, carveout=100),
            launch(2, shared_memory=132 * KB, carveout=100),
        ]),
        (gpu(2, "h200"), [
            launch(8, 2, 64, shared_memory=15 * KB, carveout=100, partition=FIRST),
            launch(8, 2, 64, shared_memory=15 * KB, carveout=100, partition=SECOND),
            launch(7, 1, 64, shared_memory=15 * KB, carveout=100),
            launch(6, 4, 64, carveout=100),
        ]),
    ],
    ids=[
        "and left gaps in the shared memory of an SM, to which more came then",
        "and left the others in one half of an SM, to which more came then",
    ],
)  # fmt: skip
def test_every_other_block_of_an_outsider_has_left(
    spec: tb.DeviceSpec, launches: list[tb.Launch]
) -> None:
    order = [(0, 1), (1, 2), (2, 3)]
    found = tb.coresident(launches, spec, groups=[[0, 2, 3]], after=order, fixes=False)
    assert (found.safe, found.stranded) == (False, 3)


@pytest.mark.parametrize(
    ("spec", "group", "launches"),
    [
        (LARGER, [1], [
            tb.Launch(18, 320, 40),
            tb.Launch(105, 192, 24, carveout=100, priority=-1),
        ]),
        (LARGER, [0, 2], [
            tb.Launch(6, 256, 40, 18_153, carveout=100, cluster=6, priority=-1),
            tb.Launch(8, 384, 24, 35_261, carveout=100, priority=-1),
            tb.Launch(6, 1024, 24, 19_354, carveout=100, cluster=2, priority=-2),
        ]),
        (replace(LARGER, mechanisms=THREE_TPCS.mechanisms), [1, 2, 3], [
            tb.Launch(3, 320, 128, 5_581, carveout=50, cluster=3),
            tb.Launch(2, 128, 40, 188_372),
            tb.Launch(8, 192, 16, cluster=4),
            tb.Launch(2, 160, 24, 194_548, carveout=100),
        ]),
        (SMALLER, [0], [
            tb.Launch(3, 32, 32, 20 * KB, carveout=25, cluster=3),
            tb.Launch(2, 32, 48, 60 * KB, carveout=100, partition=tb.Partition((0, 1, 6, 7))),
            tb.Launch(7, 96, 24, 20 * KB, carveout=25, cooperative=True),
        ]),
        (gpu(5, "h200", gpcs=((0, 1, 2),)), [0, 1], [
            tb.Launch(2, 32, 40, 98_139, carveout=100),
            tb.Launch(5, 512, 64, 51_980, carveout=100),
            tb.Launch(8, 32, 64, 74_053, carveout=100, cluster=2),
        ]),
        (gpu(5, "h200", gpcs=((0, 1, 2),)), [0, 2], [
            tb.Launch(1, 384, 16, 109_825, carveout=50, partition=tb.Partition((2, 3))),
            tb.Launch(2, 320, 128, carveout=50, priority=-1),
            tb.Launch(3, 768, 48, cluster=3),
        ]),
        (gpu(16, "h200", gpcs=((0, 2, 4, 6), (1, 3, 5))), [0], [
            tb.Launch(
                16, 32, 24, 16_870, carveout=100, cluster=8, priority=-2, cooperative=True
            ),
            tb.Launch(16, 128, 168, 20_891, carveout=100, cluster=4, priority=-2),
            tb.Launch(6, 768, 32, 21_090, carveout=100, cluster=3),
        ]),
        (LARGER, [0, 2], [
            tb.Launch(6, 256, 128, carveout=50, cluster=6, priority=-1),
            tb.Launch(6, 32, 64, carveout=0, cluster=3),
            tb.Launch(16, 128, 96, carveout=0, cluster=4),
        ]),
        (gpu(5, "h200", gpcs=((0, 1, 2),)), [1], [
            tb.Launch(2, 256, 40, 96_411, cluster=2, priority=-1, partition=tb.Partition((0, 1))),
            tb.Launch(2, 1024, 48, 224_094, carveout=50, cluster=2, priority=-2),
            tb.Launch(
                3, 256, 168, carveout=50, cluster=3, priority=-1,
                partition=tb.Partition((0, 1, 2, 3)),
            ),
        ]),
        (SMALLER, [1, 2], [
            tb.Launch(3, 1024, 16, 145_280, carveout=100),
            tb.Launch(4, 768, 64, 203_392, carveout=100),
            tb.Launch(1, 1024, 24, priority=-1, partition=tb.Partition((2, 3))),
        ]),
        (gpu(10, "h200", gpcs=((0, 2, 4), (1, 3)), sm_preference=tuple(range(10))), [0], [
            tb.Launch(12, 96, 48, 36_481, carveout=100, cluster=6, priority=-2),
            tb.Launch(6, 32, 168, 5_995, carveout=100, cluster=6),
            tb.Launch(8, 512, 64, 5_166, carveout=100, priority=-1),
        ]),
        (gpu(2, "h200"), [3], [
            launch(shared_memory=120 * KB, carveout=100, partition=FIRST),
            launch(shared_memory=120 * KB, carveout=100, partition=FIRST),
            launch(3, shared_memory=100 * KB, carveout=100),
            launch(carveout=100, partition=SECOND),
        ]),
        (gpu(2, "h200"), [0, 1], [launch(8, cluster=2), launch(10, cluster=2)]),
        (gpu(8, "h200", gpcs=((0, 1), (2, 3))), [1], [
            launch(
                2, shared_memory=200 * KB, carveout=100, partition=tb.Partition((4, 6))
            ),
            launch(
                3, shared_memory=100 * KB, carveout=100, cluster=3, priority=-1,
                partition=tb.Partition((0, 1, 4, 5, 6, 7)),
            ),
        ]),
        (gpu(4, "h200", policy="first_fit"), [1], [
            tb.Launch(6, 384, 40),
            tb.Launch(44, 128, 24, carveout=100),
        ]),
        (gpu(8, "h200", gpcs=((0, 1), (2, 3)), clusters_take_whole_tpcs=False), [1, 2], [
            tb.Launch(1, 96, 16),
            tb.Launch(22, 320, 16, cluster=2, priority=-1),
            tb.Launch(40, 160, 16, cluster=2),
        ]),
        (gpu(5, "h200", gpcs=((0, 1, 2),)), [1, 2], [
            tb.Launch(4, 32, 48, 7_011, cluster=2),
            tb.Launch(20, 96, 48, 25_237, cluster=2),
            tb.Launch(14, 32, 168, 37_888, cluster=2),
        ]),
        (gpu(7, "h200", gpcs=((0, 1, 2, 3),)), [1], [
            launch(
                2, shared_memory=150 * KB, carveout=100, partition=tb.Partition((1, 5))
            ),
            launch(5, shared_memory=100 * KB, carveout=100, cluster=5),
        ]),
        (gpu(2, registers="pooled", shared_memory="circular"), [2], [
            launch(carveout=0),
            launch(3, carveout=75),
            launch(2, shared_memory=25_777, carveout=50),
        ]),
    ],
    ids=[
        "those that come later do not tell how many fit before them",
        "others take room that a level counts on",
        "others take room before the last one comes",
        "a level may be a high one",
        "a level may be a low one",
        "what left before a launch came has given it room",
        "a block takes the room of a cluster",
        "a level is that of the last cluster",
        "an SM has room for no more than is sure",
        "a preferred SM takes a block only if it has room",
        "a cluster takes TPCs that are not the same",
        "who is held up holds up others",
        "an SM has fewer slots for blocks of clusters",
        "a partition leaves a GPC too few SMs",
        "another policy fills SM after SM",
        "clusters take single SMs",
        "a cluster takes a TPC of one SM and half of another one",
        "a TPC of one SM is the rest of a cluster",
        "SMs share a configuration",
    ],
)  # fmt: skip
def test_group_is_stranded(
    spec: tb.DeviceSpec, group: list[int], launches: list[tb.Launch]
) -> None:
    found = tb.coresident(launches, spec, groups=[group], fixes=False)
    assert (found.safe, found.stranded in group) == (False, True)


def test_solver_is_loaded_where_it_is_needed() -> None:
    """Loading it takes seconds on a busy machine, within the time limit of an answer."""
    code = """
import sys
import tbsched as tb
found = tb.coresident([tb.Launch(300, 1024, 32)], "h200", seconds=60)
print(found.safe, len(found.fixes), "ortools.sat.python.cp_model" in sys.modules)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.split() == ["False", "1", "False"]
