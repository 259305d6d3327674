"""Barriers on a real GPU: launches meet where all their blocks fit at once, and hang elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb
from gpu.together.record import Score, draw, meetings, predict
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu

KB = 1024
H200 = tb.device("h200")
STATES = H200.initial_states()

# Two kernels of which every SM would hold blocks of both, but for the configuration that the first
# one sets; workers and schedulers of a megakernel; a GEMM of clusters beside communication.
SMALL, LARGE = tb.Launch(64, 256, 32), tb.Launch(132, 128, 32, 200 * KB)
SCHEDULERS, WORKERS = tb.Launch(16, 128, 32), tb.Launch(128, 256, 168, 100 * KB)
GEMM, COMMUNICATION = tb.Launch(120, 384, 168, 200 * KB, cluster=4), tb.Launch(24, 256, 32)
PUZZLES = [
    ((SMALL, LARGE), {1: 64}),
    ((replace(SMALL, carveout=100), LARGE), {}),
    ((SCHEDULERS, WORKERS), {1: 12}),
    ((replace(SCHEDULERS, carveout=100), WORKERS), {}),
    ((replace(GEMM, blocks=132),), {0: 12}),
    ((replace(GEMM, blocks=132, cluster=2),), {}),
    ((COMMUNICATION, GEMM), {1: 24}),
    ((GEMM, COMMUNICATION), {}),
]


def meet(gpu: Gpu, *launches: tb.Launch, limit: float = 0.002) -> tb.Meeting:
    return tb.meet(tb.Sequence(launches), gpu=gpu, limit=limit)


def full(gpu: Gpu) -> tb.Launch:
    """All threads of all SMs, as many as they hold."""
    one = tb.Launch(1, 1024, 32)
    return replace(one, blocks=gpu._gpu.resident(one) * gpu.info.sms)


def works(gpu: Gpu) -> bool:
    return meet(gpu, full(gpu)).met == (True,)


def test_as_many_as_fit_meet_and_one_more_hangs(gpu: Gpu) -> None:
    most = full(gpu)
    more = replace(most, blocks=most.blocks + 1)
    for _ in range(20):
        assert meet(gpu, most).met == (True,)
        found = meet(gpu, more)
        assert (found.met, found.missing) == ((False,), {0: 1})


def test_a_million_blocks_hang_and_all_leave(gpu: Gpu) -> None:
    found = meet(gpu, tb.Launch(1_000_000, 32, 16))
    assert found.met == (False,)
    assert works(gpu)


def test_how_long_it_takes(gpu: Gpu) -> None:
    half = replace(full(gpu), blocks=full(gpu).blocks // 2)
    for launches in ([half], [half, half], [full(gpu), half], [half, full(gpu)]):
        sequence = tb.Sequence(launches)
        list(tb.meet_many([sequence] * 10, gpu=gpu))
        before, begin = gpu.time_spent(), time.perf_counter()
        found = list(tb.meet_many([sequence] * 200, gpu=gpu))
        took = (time.perf_counter() - begin) / 200
        spent = {key: (v - before[key]) / 200 * 1e6 for key, v in gpu.time_spent().items()}
        words = ", ".join(f"{key} {value:.1f}" for key, value in spent.items())
        print(f"{len(launches)} launches, met {bool(found[-1])}: {took * 1e6:.0f} us; {words}")
        assert len({bool(one) for one in found}) == 1


def test_groups_are_judged_apart(gpu: Gpu) -> None:
    half = replace(full(gpu), blocks=full(gpu).blocks // 2)
    sequence = tb.Sequence([half, full(gpu)])
    assert tb.meet(sequence, [[0], [1]], gpu=gpu).met == (True, False)
    assert tb.meet(sequence, [[1], [0]], gpu=gpu).met == (False, True)
    assert tb.meet(tb.Sequence([half, half]), [[0], [1]], gpu=gpu).met == (True, True)


def test_a_release_makes_room_for_a_group(gpu: Gpu) -> None:
    sequence = tb.Sequence([full(gpu), tb.Release(0), full(gpu)])
    assert tb.meet(sequence, gpu=gpu).met == (True,)


@pytest.mark.parametrize(("launches", "missing"), PUZZLES)
def test_puzzles_of_users(
    hopper: Gpu, launches: tuple[tb.Launch, ...], missing: dict[int, int]
) -> None:
    found = meet(hopper, *launches)
    print(found)
    assert found.missing == missing
    assert bool(found) == (not missing)


@pytest.mark.parametrize("state", [STATES[0], STATES[7], STATES[18], STATES[29]])
def test_meetings_begin_from_the_state_that_the_gpu_was_steered_to(
    hopper: Gpu, state: tb.InitialState
) -> None:
    for launches, missing in PUZZLES:
        assert not meet(hopper, full(hopper), full(hopper))
        found = tb.Steered(hopper, "h200", state).meet(tb.Sequence(launches))
        predicted = tb.predict(tb.Sequence(launches), "h200", initial_state=state)
        for one, other in zip(predicted, found.trace, strict=True):
            np.testing.assert_array_equal(one.smid, other.smid)
        assert found.missing == missing


def test_blocks_of_a_meeting_are_as_predicted_from_one_of_the_states(hopper: Gpu) -> None:
    for launches, _ in PUZZLES:
        sequence = tb.Sequence(launches)
        expected = [tb.predict(sequence, H200, initial_state=state) for state in STATES]
        for before in (full(hopper), GEMM):
            assert not meet(hopper, before, full(hopper))
            found = tb.meet(sequence, gpu=hopper).trace
            assert any(
                all(np.array_equal(a.smid, b.smid) for a, b in zip(one, found, strict=True))
                for one in expected
            )


def test_random_groups_meet_as_predicted(hopper: Gpu) -> None:
    asked, score = draw(H200, seed=20, count=100), Score(0)
    for number, (one, found) in enumerate(zip(asked, meetings(hopper, asked), strict=True)):
        assert isinstance(found, tb.Meeting)
        score.add(number, one, H200, predict(one, H200), found)
    print(score)
    assert not score.wrong


def test_interrupt_in_a_hang(gpu: Gpu) -> None:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        meet(gpu, full(gpu), full(gpu), limit=5.0)
    assert time.monotonic() - begin < 2
    assert works(gpu)


def test_deadline_in_a_hang(gpu: Gpu) -> None:
    hangs = tb.Sequence([full(gpu), full(gpu)])
    with pytest.raises(tb.DeadlineExceeded, match="and has left"):
        tb.meet(hangs, gpu=gpu, limit=5.0, deadline=0.2)
    assert works(gpu)


HANGS = """
import tbsched as tb
from tbsched.launcher.observe import Gpu
gpu = Gpu(0)
full = tb.Launch(2 * gpu.info.sms, 1024, 32)
print(tb.meet(tb.Sequence([full]), gpu=gpu), flush=True)
tb.meet(tb.Sequence([full, full]), gpu=gpu, limit=9.0, deadline=20.0)
"""
WORKS = """
import tbsched as tb
from tbsched.launcher.observe import Gpu
gpu = Gpu(0)
print(tb.meet(tb.Sequence([tb.Launch(2 * gpu.info.sms, 1024, 32)]), gpu=gpu, deadline=5.0).met)
"""


@pytest.mark.usefixtures("gpu")
def test_killed_in_a_hang() -> None:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(
        [sys.executable, "-c", HANGS], stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "group 0 has met: launch 0\n"
        time.sleep(0.5)
        child.kill()
    done = subprocess.run(
        [sys.executable, "-c", WORKS],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert done.stdout == "(True,)\n", done.stderr
