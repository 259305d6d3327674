"""Launches whose blocks wait for each other, against a driver that emulates a GPU of four SMs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import tbsched as tb
from helpers import Fake, run_on_fake
from tbsched.campaigns import ModelGpu
from tbsched.launcher.observe import AHEAD, Gpu
from tbsched.traces.annotations import met_groups

pytest.importorskip("tbsched._launcher", reason="built without nvcc")

SMS = 4
FULL = tb.Launch(2 * SMS, 1024, 32)  # all warps of all SMs
HALF = tb.Launch(SMS, 1024, 32)
ONE = tb.Launch(1, 32, 16)


def meet(gpu: Gpu, *events: tb.Launch | tb.Release, **options: Any) -> tb.Meeting:
    return tb.meet(tb.Sequence(events), gpu=gpu, **{"limit": 0.4, **options})


def still_works(gpu: Gpu) -> bool:
    return meet(gpu, FULL).met == (True,)


def test_blocks_of_one_grid_meet(gpu: Gpu) -> None:
    found = meet(gpu, FULL)
    assert (found.met, found.groups, found.missing, bool(found)) == ((True,), ((0,),), {}, True)
    assert found.trace[0].placed == FULL.blocks
    assert found.trace == found.trace


def test_blocks_of_several_grids_meet(gpu: Gpu) -> None:
    assert meet(gpu, HALF, HALF).met == (True,)


def test_a_grid_that_does_not_fit_hangs(gpu: Gpu) -> None:
    found = meet(gpu, tb.Launch(2 * SMS + 1, 1024, 32))
    assert (found.met, found.missing, bool(found)) == ((False,), {0: 1}, False)
    assert still_works(gpu)


def test_whoever_comes_last_lets_the_others_hang(gpu: Gpu) -> None:
    found = meet(gpu, HALF, FULL)
    assert (found.met, found.missing) == ((False,), {1: SMS})
    assert found.trace[1].placed == SMS
    assert found.trace[1].smid.tolist().count(-1) == SMS


def test_several_groups_are_judged_apart(gpu: Gpu) -> None:
    found = meet(gpu, HALF, FULL, groups=[[0], [1]])
    assert (found.groups, found.met) == (((0,), (1,)), (True, False))
    assert str(found) == (
        "group 0 has met: launch 0\ngroup 1 hangs: launch 1; of launch 1 4 of 8 blocks never came"
    )
    assert repr(found) == "<Meeting: 1 of 2 groups met on Fake GPU, 4 SMs, observed>"


def test_launches_in_no_group_only_take_room(gpu: Gpu) -> None:
    assert meet(gpu, FULL, HALF, groups=[[1]]).met == (False,)
    assert meet(gpu, FULL, HALF, groups=[[0]]).met == (True,)
    assert meet(gpu, FULL, HALF, groups=[]).met == ()


def test_a_release_makes_room(gpu: Gpu) -> None:
    found = meet(gpu, FULL, HALF, tb.Release(0), HALF)
    assert (found.groups, found.met) == (((1, 2),), (True,))
    assert found.trace[1].placed == 0


def test_without_launches_nobody_waits(gpu: Gpu) -> None:
    assert meet(gpu).met == ()
    assert meet(gpu, ONE, tb.Release(0)).groups == ()


def test_blocks_that_came_before_a_group_hung_do_not_count_later(gpu: Gpu) -> None:
    for _ in range(3):
        assert not meet(gpu, HALF, FULL)
        assert meet(gpu, HALF, HALF)


def test_many_runs_use_up_the_points_where_blocks_meet(gpu: Gpu) -> None:
    sequences = [tb.Sequence([ONE] * 60)] * 20  # 1200 points; 1024 are there
    groups = [[[number] for number in range(60)]] * 20
    for found in tb.meet_many(sequences, groups, gpu=gpu):
        assert isinstance(found, tb.Meeting)
        assert found.met == (True,) * 60


def test_the_trace_says_who_met(gpu: Gpu, tmp_path: Any) -> None:
    found = meet(gpu, HALF, FULL, groups=[[0], [1]])
    tb.save_traces(tmp_path / "one.jsonl", [found.trace])
    (trace,) = tb.load_traces(tmp_path / "one.jsonl")
    assert met_groups(trace.extra) == [((0,), True), ((1,), False)]
    assert met_groups({}) is None


def test_a_hang_is_known_after_the_limit(gpu: Gpu) -> None:
    before = gpu.time_spent()["settle"]
    meet(gpu, FULL, HALF, limit=0.05)
    assert gpu.time_spent()["settle"] - before >= 0.05


def test_meetings_that_the_time_stamps_deny_are_doubtful(gpu: Gpu, knobs: Fake) -> None:
    knobs["never_meets"] = 1
    with pytest.raises(tb.UnstableMeasurement, match="group 0 has not met, though all"):
        meet(gpu, HALF)
    knobs["never_meets"] = 0
    assert still_works(gpu)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[2]], r"groups\[0\]: 2 is outside 0..1"),
        ([[-1]], r"groups\[0\]: -1 is outside 0..1"),
        ([[0], [1, 0]], r"groups\[1\]: launch 0 is in groups\[0\] already"),
        ([[0, 0]], r"groups\[0\]: launch 0 is in groups\[0\] already"),
        ([[]], r"groups\[0\]: a group needs a launch"),
    ],
)
def test_wrong_groups_are_refused(gpu: Gpu, groups: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        meet(gpu, ONE, ONE, groups=groups)


@pytest.mark.parametrize("groups", [[0, 1], 0, "01", [["0"]], [[0.0]], [[True]], [None]])
def test_what_are_no_groups_is_refused(gpu: Gpu, groups: Any) -> None:
    with pytest.raises(TypeError, match=r"groups.*(a list|an integer) is needed"):
        meet(gpu, ONE, ONE, groups=groups)


def test_a_launch_of_a_group_is_not_released(gpu: Gpu) -> None:
    with pytest.raises(ValueError, match=r"groups\[0\]: launch 0 is released; a block of a group"):
        meet(gpu, ONE, tb.Release(0), groups=[[0]])
    with pytest.raises(ValueError, match=r"groups\[0\]: the sequence has no launches"):
        meet(gpu, groups=[[0]])


def test_what_is_no_sequence_and_what_the_gpu_refuses(gpu: Gpu) -> None:
    with pytest.raises(TypeError, match="a Sequence is needed"):
        tb.meet([ONE], gpu=gpu)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Launch\.registers: 11"):
        meet(gpu, tb.Launch(1, 32, 11))


@pytest.mark.parametrize("limit", [0, -1, 11, float("nan"), float("inf")])
def test_limits_are_positive_and_small(gpu: Gpu, limit: float) -> None:
    with pytest.raises(ValueError, match="limit: "):
        meet(gpu, ONE, limit=limit)


def test_a_limit_is_a_number(gpu: Gpu) -> None:
    with pytest.raises(TypeError, match="limit: seconds are needed"):
        meet(gpu, ONE, limit="1")
    with pytest.raises(TypeError, match="limit: seconds are needed"):
        list(tb.meet_many([], gpu=gpu, limit=True))


def test_launches_of_one_stream_never_meet(gpu: Gpu) -> None:
    first = tb.Launch(1, 32, 16, stream=0)
    assert meet(gpu, first, first).missing == {1: 1}


def test_who_needs_more_local_memory_waits_for_an_idle_gpu(gpu: Gpu, knobs: Fake) -> None:
    large = tb.Launch(1, 32, 16, local_memory=knobs["local_memory"] + 4096)
    knobs["growing_blocks"] = 1
    assert meet(gpu, ONE, large, limit=0.001).missing == {1: 1}
    assert still_works(gpu)


def test_a_launch_call_that_blocks_in_a_full_queue_ends(gpu: Gpu, knobs: Fake) -> None:
    knobs["queue_depth"] = 260
    waiting = [tb.Launch(1, 32, 16, stream=0)] * 300
    assert len(meet(gpu, *waiting, limit=0.0001).missing) == 299
    knobs["queue_depth"] = 0
    assert still_works(gpu)


def test_only_a_gpu_meets_from_a_state(gpu: Gpu) -> None:
    with pytest.raises(TypeError, match=r"Steered\.gpu: a Gpu is needed"):
        tb.Steered(ModelGpu("h200"), "h200").meet(tb.Sequence([ONE]))
    found = tb.Steered(gpu, "rtx3090").meet(tb.Sequence([HALF, FULL]))
    assert found.met == (False,)


def test_many_give_what_each_gives(gpu: Gpu) -> None:
    sequences = [tb.Sequence(launches) for launches in ([HALF], [HALF, FULL], [FULL, HALF])] * 20
    found = list(tb.meet_many(sequences, gpu=gpu))
    assert [each.met for each in found if isinstance(each, tb.Meeting)] == [
        (True,), (False,), (False,),
    ] * 20  # fmt: skip


def test_groups_of_many_are_as_many(gpu: Gpu) -> None:
    with pytest.raises(ValueError, match="shorter"):
        list(tb.meet_many([tb.Sequence([ONE])] * 2, [[[0]]], gpu=gpu))
    assert still_works(gpu)


def test_an_endless_source_is_taken_as_the_gpu_comes_to_it(gpu: Gpu) -> None:
    taken = 0

    def endless() -> Iterator[tb.Sequence]:
        nonlocal taken
        while True:
            taken += 1
            yield tb.Sequence([FULL])

    found = tb.meet_many(endless(), gpu=gpu)
    assert next(found)
    found.close()
    assert taken == AHEAD + 1
    assert still_works(gpu)


def test_a_run_past_its_deadline_does_not_end_the_others(gpu: Gpu) -> None:
    stuck = tb.Sequence([FULL, HALF])
    first, second = tb.meet_many([stuck, tb.Sequence([ONE])], gpu=gpu, limit=5.0, deadline=0.2)
    assert isinstance(first, tb.DeadlineExceeded)
    assert isinstance(second, tb.Meeting | tb.DeadlineExceeded)
    assert still_works(gpu)


@pytest.mark.parametrize("duration", [None, 1.0])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_partners_of_a_launch_that_fails_are_told(
    gpu: Gpu, knobs: Fake, at: int, duration: float | None
) -> None:
    assert still_works(gpu)
    sequence = tb.Sequence([replace(HALF, blocks=1, duration=duration)] * 3)
    knobs.fail("cuLaunchKernelEx", at)
    begin = time.monotonic()
    with pytest.raises(tb.CudaError, match="cuLaunchKernelEx"):
        tb.meet(sequence, gpu=gpu, limit=5.0)
    assert time.monotonic() - begin < 3
    knobs.fail(at=0)
    assert tb.meet(sequence, gpu=gpu, limit=5.0).met == (True,)


def test_interrupt_in_a_hang_releases_everything(gpu: Gpu) -> None:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        meet(gpu, FULL, HALF, limit=5.0)
    assert time.monotonic() - begin < 3
    assert still_works(gpu)


def test_interrupt_of_many_releases_everything(gpu: Gpu) -> None:
    sequences = [tb.Sequence([FULL, HALF])] * 3
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        list(tb.meet_many(sequences, gpu=gpu, limit=5.0))
    assert still_works(gpu)


def test_module_level(fake: Any) -> None:
    code = (
        "import tbsched as tb\n"
        "half, full = tb.Launch(4, 1024, 32), tb.Launch(8, 1024, 32)\n"
        "print(tb.meet(tb.Sequence([full])).met, tb.meet(tb.Sequence([half, full])).met)\n"
    )
    done = run_on_fake(code, fake)
    assert done.stdout == "(True,) (False,)\n", done.stderr
