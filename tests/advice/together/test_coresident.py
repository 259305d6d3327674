"""What the answer says, and that it is so."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from dataclasses import replace
from typing import Any

import pytest

import tbsched as tb
from advice.together.puzzles import COMMUNICATION, GEMM, LARGE, SCHEDULERS, SMALL, WORKERS
from helpers import KB, gpu, launch
from tbsched.prediction.together.search import Question, search


def check_stranded(found: tb.Coresidency) -> None:
    """Whether the witness strands what it says."""
    assert found.witness is not None
    assert found.stranded is not None
    trace = tb.predict(
        found.witness,
        str(found.device.details["model"]),
        initial_state=found.state,
        issue_times=found.issue_times,
    )
    last = trace[found.order.index(found.stranded)]
    assert last.final_smid is not None
    assert found.waiting == (last.final_smid < 0).sum() > 0


@pytest.mark.parametrize(
    ("launches", "waiting", "cause"),
    [
        ((WORKERS, SCHEDULERS), 12, "registers"),
        ((SMALL, LARGE), 64, "shared_memory"),
        ((GEMM, COMMUNICATION), 24, "registers"),
    ],
)
def test_puzzles_of_users(launches: tuple[tb.Launch, ...], waiting: int, cause: str) -> None:
    found = tb.coresident(launches, "h200", fixes=False)
    assert (found.safe, found.waiting, found.cause) == (False, waiting, cause)
    assert found.witness is not None
    assert len(found.witness) == 2
    assert "configuration" in {row.cause for row in found.limits}
    assert f"{waiting} of" in found.argument
    check_stranded(found)


def test_carveout_makes_the_puzzles_safe() -> None:
    for launches in (
        (WORKERS, replace(SCHEDULERS, carveout=100)),
        (LARGE, replace(SMALL, carveout=100)),
    ):
        found = tb.coresident(launches, "h200")
        assert (found.safe, found.witness, found.fixes) == (True, None, ())


def test_proof_by_full_sms_has_its_numbers() -> None:
    found = tb.coresident([launch(60, 8), launch(60, 8)], "h200")
    assert (found.safe, found.proof) == (True, "full_sms")
    assert [row.launch for row in found.full_sms] == [0, 1]
    assert all(row.most < row.needed for row in found.full_sms)
    assert found.full_sms[0].needed == 132


def test_proof_knows_blocks_that_only_share_an_sm_that_another_configured() -> None:
    spec = gpu(12, "h200", explicit_carveout_is_upper_bound=False, sm_preference=tuple(range(12)))
    small = tb.Launch(1, 512, 48, 54 * 1024, carveout=20)
    two = replace(small, partition=tb.Partition((0, 1)))
    everywhere = tb.Launch(12, 32, 16, carveout=100)
    last = tb.Launch(1, 128, 160, carveout=100, partition=tb.Partition((0,)))
    beside = tb.Launch(1, 1024, 16, carveout=100, partition=tb.Partition((1,)))
    stranded = tb.predict(tb.Sequence([everywhere, small, beside, two, last]), spec)[-1]
    assert (stranded.placed, stranded.limiter) == (0, "registers")
    for launches in itertools.permutations([small, two, everywhere, last]):
        assert tb.coresident([*launches, beside], spec, plays=0).safe is None


def test_proof_knows_a_tpc_of_fewer_sms() -> None:
    spec = gpu(5, "h200", gpcs=((0, 1, 2),))
    assert (
        tb.coresident([launch(2, 32, 64, cluster=2), launch(4, 32, 64, cluster=4)], spec).safe
        is False
    )


def test_proof_by_playing_every_order() -> None:
    found = tb.coresident([WORKERS, replace(SCHEDULERS, carveout=100)], "h200")
    assert found.safe
    if found.proof == "played":
        assert f"{found.plays:,} predictions" in found.argument


def test_single_launch_that_does_not_fit() -> None:
    found = tb.coresident([launch(5, 32)], gpu(4, warps_per_sm=32))
    assert (found.safe, found.stranded, found.order) == (False, 0, (0,))


def test_outsiders_may_leave_or_stay() -> None:
    full = launch(8, 24)
    spec = gpu(4)
    assert tb.coresident([full, full], spec, groups=[[0]], fixes=False).safe is False
    assert tb.coresident([full, full], spec, groups=[[0]], after=[(0, 1)], fixes=False).safe is True
    assert tb.coresident([full], spec, fixes=False).safe is True


SPLIT = tb.split_sms("h200", 64)[0]
LARGE_OUTSIDERS = {
    "what leaves just before the last launch only gives room": (
        tb.Launch(131, 32, 64, 186_322, carveout=100),
        tb.Launch(112, 64, 48, 43_628, carveout=100, cluster=4),
    ),
    "an SM has the room that it had, whatever leaves": (
        tb.Launch(80, 32, 16, 197_450, carveout=100, cluster=8),
        tb.Launch(346, 128, 32, carveout=100, cluster=2),
        tb.Launch(26, 768, 40, 32_092, carveout=100),
    ),
    "an outsider that waits holds up nothing elsewhere": (
        tb.Launch(40, 320, 168, 47_072, partition=SPLIT[1]),
        tb.Launch(57, 1024, 32),
        tb.Launch(5, 384, 64, 18_849, carveout=0, partition=SPLIT[0]),
    ),
    "a launch leaves all SMs with as much room": (
        tb.Launch(74, 768, 40, carveout=100),
        tb.Launch(80, 64, 64, 36_154, carveout=100, cluster=16),
        tb.Launch(190, 768, 16, carveout=100),
    ),
    "clusters leave all SMs with as much room": (
        tb.Launch(108, 128, 168, carveout=100),
        tb.Launch(478, 192, 32, 27_352, carveout=100, cluster=2),
        tb.Launch(56, 320, 40, carveout=100, cluster=8),
    ),
    "of SMs with as much room the preferred ones are taken": (
        tb.Launch(23, 128, 128, 60_649, carveout=100, partition=tb.split_sms("h200", 16)[0][0]),
        tb.Launch(240, 128, 64, carveout=100),
        tb.Launch(8, 128, 168, carveout=100, partition=tb.split_sms("h200", 16)[1]),
    ),
    "as many clusters fit as can be divided": (
        tb.Launch(91, 192, 96),
        tb.Launch(34, 1024, 48, carveout=100),
        tb.Launch(992, 32, 16, carveout=100, cluster=4),
    ),
    "blocks that wait are a launch that is to come": (
        tb.Launch(928, 32, 40, 31_265, carveout=100, cluster=2),
        tb.Launch(234, 768, 16, carveout=100, priority=-2),
    ),
    "what waits holds only its own SMs": (
        tb.Launch(1024, 32, 16, 16 * KB, carveout=100, cluster=8),
        tb.Launch(8, 32, 16, carveout=100),
    ),
    "a cluster of eight is on no TPC outside the GPCs": (
        tb.Launch(16, 96, 32, carveout=100, cluster=8),
        tb.Launch(112, 256, 16, carveout=100, cluster=8),
        tb.Launch(8, 1024, 40, carveout=0),
    ),
    "an SM stays configured while a block stays": (
        tb.Launch(408, 192, 40, carveout=25, priority=-1),
        tb.Launch(375, 128, 64, carveout=50),
        tb.Launch(4, 128, 80, cluster=4, priority=-2),
    ),
    "small blocks that left make small gaps": (
        tb.Launch(264, 64, 16, carveout=100),
        tb.Launch(132, 32, 16, carveout=100),
        tb.Launch(132, 32, 16, 200 * KB, carveout=100),
    ),
}


@pytest.mark.parametrize("launches", LARGE_OUTSIDERS.values(), ids=LARGE_OUTSIDERS.keys())
def test_outsiders_of_any_size(launches: tuple[tb.Launch, ...]) -> None:
    group = range(1, len(launches))
    assert tb.coresident(launches, "h200", groups=[group], fixes=False).safe is True


@pytest.mark.parametrize(
    ("launch_order", "cooperative", "partitioned"),
    [("leftover", True, False), ("one_line", False, True)],
    ids=["a cooperative one whatever the priority", "one elsewhere where all stand in one line"],
)
def test_outsider_that_waits_holds_up(
    launch_order: str, cooperative: bool, partitioned: bool
) -> None:
    """The launch behind it finds SMs that are not full, and yet no room."""
    spec = replace(tb.device("h200"), launch_order=launch_order, provenance={})
    here, elsewhere = SPLIT if partitioned else (None, None)
    stays = launch(64, 4, shared_memory=100 * KB, carveout=100, partition=here)
    waits = replace(stays, shared_memory=200 * KB, cooperative=cooperative)
    held_up = launch(1, 4, carveout=100, priority=-cooperative, partition=elsewhere)
    if not partitioned:
        stays, waits = (replace(one, blocks=132) for one in (stays, waits))
    found = tb.coresident([stays, waits, held_up], spec, groups=[[2]], fixes=False)
    assert (found.safe, found.stranded) == (False, 2)


@pytest.mark.parametrize("others", [0, 17], ids=["an outsider", "a group's, which waits, too"])
def test_launch_that_is_held_up_crowds_the_other_sms(others: int) -> None:
    """It cannot spread: a cluster of its priority waits for SMs that are not full."""
    here, elsewhere = SPLIT
    fills = launch(24 - others, shared_memory=200 * KB, carveout=100, partition=here)
    fills_too = (replace(fills, blocks=others),) if others else ()
    waits = launch(8, shared_memory=100 * KB, carveout=100, cluster=8, partition=here)
    crowds = tb.Launch(190, 512, 32, carveout=100)
    passes = tb.Launch(40, 1024, 32, carveout=100, partition=elsewhere, priority=-1)
    launches = [passes, *fills_too, fills, waits, crowds]
    group = range(len(launches) - 3)
    found = tb.coresident(launches, "h200", groups=[group], fixes=False)
    assert (found.safe, found.stranded) == (False, 0)
    check_stranded(found)


def test_launches_of_another_group_leave_when_all_of_it_is_resident() -> None:
    spec = gpu(1, "h200")
    # If the first left before the second came, that would give too little shared memory to the SM.
    launches = [launch(1, 16, carveout=100), launch(1, 4), launch(1, 4, shared_memory=102_400)]
    after = [(0, 1)]
    found = tb.coresident(launches, spec, groups=[[2]], after=after, fixes=False)
    assert (found.safe, found.cause) == (False, "configuration")
    assert tb.coresident(launches, spec, groups=[[0, 1], [2]], after=after).safe is True


def test_outsider_that_others_come_after_must_be_resident_whole() -> None:
    here, elsewhere = SPLIT
    waits = tb.Launch(300, 1024, 32, partition=here)
    later = launch(partition=elsewhere)
    found = tb.coresident([waits, later], "h200", groups=[[1]], after=[(0, 1)], fixes=False)
    assert (found.safe, found.stranded) == (False, 0)
    assert tb.coresident([waits, later], "h200", groups=[[1]], fixes=False).safe is True


def test_largest_grids_are_no_more_work_than_what_the_gpu_holds() -> None:
    grid = launch(100_000_000)
    spec = tb.device("h200")
    found = search(spec, spec.policy, Question((grid, grid, launch()), ((2,),)))
    assert (found.verdict, found.cause) == ("unsafe", "queue")


def test_streams_of_a_sequence_count() -> None:
    one = launch(2, stream=3)
    found = tb.coresident(tb.Sequence([one, one]), gpu(4))
    assert (found.safe, found.cause) == (False, "stream")
    assert [fix.kind for fix in found.fixes][:1] == ["streams"]


def test_programmatic_launch_arrives_when_its_primary_has_triggered() -> None:
    primary = tb.Launch(66, 1024, 32, stream=0, duration=1.0, trigger=1e-6)
    second = tb.Launch(66, 1024, 32, stream=0, duration=1.0, programmatic=True)
    assert tb.coresident([primary, second], "h200").safe is True
    late = replace(primary, trigger=None)
    assert tb.coresident([late, second], "h200", fixes=False).cause == "stream"


def test_nobody_knows_is_neither_safe_nor_unsafe() -> None:
    found = tb.coresident(
        [WORKERS, replace(SCHEDULERS, carveout=100), SMALL, GEMM], "h200", plays=0
    )
    assert found.safe is None
    assert found.witness is None
    assert "0 predictions" in found.argument
    with pytest.raises(AssertionError, match="not known"):
        tb.assert_coresident(found.launches, "h200", plays=0)


def test_assertion_has_the_witness_and_the_fixes() -> None:
    with pytest.raises(AssertionError) as caught:
        tb.assert_coresident([WORKERS, SCHEDULERS], "h200")
    words = str(caught.value)
    assert "12 of 128 blocks of workers never start" in words
    assert "a carveout of 44 % for schedulers" in words
    assert "launch       0  schedulers  16 x 128" in words
    tb.assert_coresident([WORKERS, replace(SCHEDULERS, carveout=100)], "h200")


@pytest.mark.parametrize("one", [launch(duration=1.0), launch(stream="legacy", duration=1.0)])
def test_core_takes_no_launch_that_ends_by_itself(one: tb.Launch) -> None:
    spec = tb.device("h200")
    with pytest.raises(ValueError, match="launch 0: duration"):
        search(spec, spec.policy, Question((one,), ((0,),)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"launches": []}, "a launch is needed, got none"),
        ({"launches": [3]}, r"launches\[0\]: a Launch is needed"),
        ({"groups": []}, "a group is needed"),
        ({"groups": [[]]}, r"groups\[0\]: a launch is needed"),
        ({"groups": [[0, 2]]}, r"groups\[0\]: 2 is outside 0\.\.1"),
        ({"groups": [[0], [1, 0]]}, r"groups\[1\]: launch 0 is in a group already"),
        ({"after": [(0, 1), (1, 0)]}, "circle"),
        ({"after": [(0,)]}, r"after\[0\]: two launches are needed"),
        ({"after": [(0, 0)]}, "circle"),
        ({"plays": -1}, r"plays: -1 is outside"),
        ({"launches": [replace(WORKERS, blocks=2**31 - 1)]}, "blocks: 2147483647 in all are more"),
        (
            {"launches": [replace(WORKERS, blocks=65, cooperative=True, partition=SPLIT[0])]},
            "cooperative: .* this partition of h200 holds 64; got 65",
        ),
        ({"connections": 0}, r"connections: 0 is outside"),
        ({"fixes": 1}, "True or False is needed"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, object], message: str) -> None:
    asked = {"launches": [WORKERS, SCHEDULERS], "device": "h200", **given}
    with pytest.raises((TypeError, ValueError), match=message):
        tb.coresident(**asked)  # type: ignore[arg-type]


def test_budget_is_the_largest_safe_grid() -> None:
    assert tb.budget(WORKERS, "h200") == 132
    assert tb.budget(WORKERS, "h200", beside=[SCHEDULERS]) == 116
    assert tb.budget(WORKERS, "h200", beside=[replace(SCHEDULERS, carveout=100)]) == 132
    assert tb.budget(GEMM, "h200") == 120
    assert tb.budget(WORKERS, "h200", beside=[launch(10_000, 32)]) == 0
    for blocks, safe in ((116, True), (117, False)):
        grid = replace(WORKERS, blocks=blocks)
        found = tb.coresident([SCHEDULERS, grid], "h200", groups=[[1]], fixes=False)
        assert found.safe is safe


def test_ctrl_c_ends_a_long_search() -> None:
    asked = [tb.Launch(132, 128, 32, KB * (k + 1), carveout=100) for k in range(10)]
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        tb.coresident(asked, "h200", plays=2**31 - 1)


def test_words_tell_kernels_of_one_name_apart() -> None:
    found = tb.coresident([GEMM, GEMM], "h200", fixes=False)
    assert found.stranded == 1
    for words in (str(found), found._repr_html_()):
        assert "This strands gemm (launch 1):" in words
        assert "one more block of gemm (launch 1)" in words
        assert "No change is known" in words  # none was looked for


def test_less_than_one_sm_is_none() -> None:
    found = tb.coresident([launch(10, 4, cluster=2), launch(4, 2, cluster=4)], "h200")
    assert found.argument == "all blocks together fill no SM"


def test_events_for_which_no_launch_waits_do_not_count() -> None:
    one, other = (tb.Launch(8, 64, 32, stream=stream, duration=1e-5) for stream in (0, 1))
    legacy = tb.Launch(8, 64, 32, stream="legacy", duration=1e-5)
    function = tb.HostFunction(1e-5, stream=1)
    harmless: list[list[Any]] = [
        [tb.HostCall("cudaMalloc", 1e-4), one, other],
        [one, other, function],
        [one, tb.HostFunction(1e-5), other],
        [one, other, replace(function, stream=2)],
    ]
    for events in harmless:
        assert tb.coresident(tb.Sequence(events), "rtx3090").safe
    in_line: list[tuple[list[Any], bool]] = [
        ([tb.HostCall("cudaFree", 1e-4, waits="device"), one, other], True),
        ([one, tb.HostCall("cudaFree", 1e-4, waits="device"), other], False),
        ([one, function, other], True),
        ([one, function, tb.RecordEvent(0, 1), other], True),
        ([one, legacy, function], False),
        ([one, other, replace(function, stream="legacy")], False),
        ([one, tb.WriteValue("x", stream=2), other], True),
        ([one, tb.Copy(1 << 20, "h2d", stream=3), other], True),
    ]
    for events, safe in in_line:
        assert tb.coresident(tb.Sequence(events), "rtx3090").safe is safe
