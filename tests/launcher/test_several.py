"""Sequences on two GPUs, which the fake driver emulates: four SMs each."""

from __future__ import annotations

from pathlib import Path

import pytest

import tbsched as tb
from helpers import run_on_fake
from tbsched.launcher import observe
from tbsched.launcher.several import check_several

START = """
import tbsched as tb

SETTLE = 0.5  # seconds: the fake GPU is as slow as a busy machine

def kernel(blocks, gpu, meets=None, stream=0, duration=1e-3, threads=1024):
    return tb.Launch(
        blocks, threads, 32, stream=stream, gpu=gpu, host=gpu, meets=meets, duration=duration
    )

def show(found):
    begun = [int((launch.smid >= 0).sum()) for launch in found]
    print(found.extra.get("met"), begun, len(found.devices))
"""
ENDS = """
three = tb.Sequence([kernel(3, 0, "a"), kernel(4, 1, "a"), kernel(20, 1)])
show(tb.observe(three, [0, 1], settle=SETTLE))
show(tb.observe(tb.Sequence([kernel(3, 1, "a", threads=32)]), [0, 1], settle=SETTLE))
"""
# Blocks of 1,024 threads: two fit an SM. Each GPU is full of the group that the other one misses.
HANGS = """
turned = [kernel(8, 0, "a"), kernel(8, 0, "b", 1), kernel(8, 1, "b", 1), kernel(8, 1, "a")]
show(tb.observe(tb.Sequence(turned), [0, 1], settle=SETTLE))
show(tb.observe(tb.Sequence([kernel(1, 0, "a"), kernel(1, 1, "a")]), [0, 1], settle=SETTLE))
"""
LATE = """
late = [tb.HostCall("sleep", duration=0.02, host=1, gpu=1), kernel(2, 1, "a")]
show(tb.observe(tb.Sequence([kernel(8, 0, "a"), kernel(8, 0), *late]), [0, 1], settle=SETTLE))
"""
# The host of GPU 0 waits for a group that also waits for what it would launch next.
WAITS = """
for waits, stream in (("device", None), ("stream", 0), ("stream", 1)):
    call = tb.HostCall("load", duration=1e-3, waits=waits, stream=stream)
    program = [kernel(3, 0, "a"), call, kernel(4, 0, "b", 1), kernel(4, 1, "b"), kernel(5, 1, "a")]
    show(tb.observe(tb.Sequence(program), [0, 1], settle=SETTLE))
"""
# When blocks are told to leave, the room lets others come: those must not count as having met.
HANGS_OFTEN = """
turned = [kernel(8, 0, "a"), kernel(8, 0, "b", 1), kernel(8, 1, "b", 1), kernel(8, 1, "a")]
print({tuple(tb.observe(tb.Sequence(turned), [0, 1]).extra["met"]) for _ in range(60)})
"""
# Another process takes turns on GPU 1, about one every third run.
SHARED = """
import ctypes
import os

fake = ctypes.CDLL(os.environ["TBSCHED_LIBCUDA"])
for key, value in ((b"turn_us", 15_000), (b"away_us", 2500)):
    fake.fake_set_of(ctypes.c_int64(1), key, ctypes.c_int64(value))
sequence = tb.Sequence([kernel(1, 0, "a", duration=5e-3), kernel(1, 1, "a", duration=5e-3)])
for _ in range(8):
    show(tb.observe(sequence, [0, 1], settle=SETTLE))
print(tb.launcher.observe.opened(1).interruptions > 0)
"""
NOT_IN_TIME = """
import ctypes
import os

fake = ctypes.CDLL(os.environ["TBSCHED_LIBCUDA"])

def mute(on):
    fake.fake_set(b"mute", ctypes.c_int64(on))

sequence = tb.Sequence([kernel(1, 0, "a"), kernel(1, 1, "a")])
show(tb.observe(sequence, [0, 1], settle=SETTLE))
mute(1)
try:
    tb.observe(sequence, [0, 1], deadline=0.2, settle=5)
except tb.DeadlineExceeded as error:
    print("every block has been told to leave" in str(error))
mute(0)
show(tb.observe(sequence, [0, 1], settle=SETTLE))
"""
FAILS = """
import ctypes
import os

fake = ctypes.CDLL(os.environ["TBSCHED_LIBCUDA"])
sequence = tb.Sequence([kernel(1, 0, "a"), kernel(1, 1, "a")])
for call in (
    "cuDeviceCanAccessPeer", "cuDeviceGetP2PAttribute", "cuCtxEnablePeerAccess", "cuLaunchKernelEx"
):
    fake.fake_fail(call.encode(), *map(ctypes.c_int64, (1, 1, 0)))
    try:
        tb.observe(sequence, [0, 1], settle=SETTLE)
    except tb.CudaError as error:
        print(error.call)
    show(tb.observe(sequence, [0, 1], settle=SETTLE))
"""
# The second GPU places its block only after the first one has gone on to other work.
LATER = """
import ctypes
import os

fake = ctypes.CDLL(os.environ["TBSCHED_LIBCUDA"])

def memory():
    kinds = "device memory", "host memory"
    return [ctypes.c_int64(fake.fake_live(kind.encode())).value for kind in kinds]

def mute(launch):
    fake.fake_set_of(ctypes.c_int64(1), b"mute", ctypes.c_int64(launch))

sequence = tb.Sequence([kernel(1, 0, "a"), kernel(1, 1, "a")])
show(tb.observe(sequence, [0, 1], settle=SETTLE))
before = memory()
# One that comes before, then that of the sequence.
mute(fake.fake_get_of(ctypes.c_int64(1), b"launches") + 2)
try:
    tb.observe(sequence, [0, 1], deadline=0.2, settle=5)
except tb.DeadlineExceeded:
    pass
tb.observe(tb.Sequence([tb.Launch(1, 32, 16)]), gpu=0)
print([now > then for now, then in zip(memory(), before)])
mute(0)
show(tb.observe(sequence, [0, 1], settle=SETTLE))
print(memory() == before)
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ENDS, "[True] [3, 4, 20] 2\n[True] [3] 2\n"),
        (HANGS, "[False, False] [8, 0, 8, 0] 2\n[True] [1, 1] 2\n"),
        (LATE, "[True] [8, 8, 2] 2\n"),
        (WAITS, "[False, False] [3, 0, 4, 0] 2\n" * 2 + "[True, True] [3, 4, 4, 5] 2\n"),
        (HANGS_OFTEN, "{(False, False)}\n"),
        (SHARED, "[True] [1, 1] 2\n" * 8 + "True\n"),
        (NOT_IN_TIME, "[True] [1, 1] 2\nTrue\n[True] [1, 1] 2\n"),
        (LATER, "[True] [1, 1] 2\n[True, True]\n[True] [1, 1] 2\nTrue\n"),
        (
            FAILS,
            "cuDeviceCanAccessPeer\n[True] [1, 1] 2\ncuDeviceGetP2PAttribute\n[True] [1, 1] 2\n"
            "cuCtxEnablePeerAccess\n[True] [1, 1] 2\ncuLaunchKernelEx\n[True] [1, 1] 2\n",
        ),
    ],
    ids=["ends", "hangs", "late", "waits", "often", "shared", "not in time", "later", "fails"],
)
def test_two_gpus(fake: Path, code: str, expected: str) -> None:
    pytest.importorskip("tbsched._launcher", reason="built without nvcc")
    done = run_on_fake(START + code, fake, FAKE_GPUS="2")
    assert done.stdout == expected, done.stderr


def test_a_gpu_that_cannot_reach_the_other_one_is_refused(fake: Path) -> None:
    pytest.importorskip("tbsched._launcher", reason="built without nvcc")
    code = 'tb.observe(tb.Sequence([kernel(1, 0, "a"), kernel(1, 1, "a")]), [0, 1])'
    done = run_on_fake(START + code, fake, FAKE_GPUS="2", FAKE_NO_PEERS="1")
    assert "ValueError: observe: GPU 1 cannot reach the memory of GPU 0" in done.stderr


def test_a_gpu_without_atomics_on_the_other_one_is_refused(fake: Path) -> None:
    pytest.importorskip("tbsched._launcher", reason="built without nvcc")
    code = """
import ctypes, os
try:
    tb.observe(tb.Sequence([kernel(1, 0, "a"), kernel(1, 1, "a")]), [0, 1])
except ValueError as error:
    print(error)
print(ctypes.CDLL(os.environ["TBSCHED_LIBCUDA"]).fake_get(b"launches"))
"""
    done = run_on_fake(START + code, fake, FAKE_GPUS="2", FAKE_NO_PEER_ATOMICS="1")
    words = "observe: GPU 1 has no native atomics on the memory of GPU 0, where blocks meet"
    assert done.stdout == f"{words}\n0\n", done.stderr


def test_the_deadline_leaves_time_for_launches_and_host_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []

    def noted(seq: tb.Sequence, gpus: object, *, deadline: float, settle: float) -> None:
        found.append(deadline)

    monkeypatch.setattr(observe, "opened", lambda number: None)
    monkeypatch.setattr(observe, "observe_several", noted)
    calls = [tb.HostCall("wait", duration=4.0), tb.HostCall("wait", duration=5.0, gpu=1, host=1)]
    tb.observe(tb.Sequence([kernel(), *calls, kernel(gpu=1, host=1, duration=0.5)]), [0, 1])
    assert found == [pytest.approx(observe.SHORTEST_DEADLINE + 9 + 2 * 0.5 + 2e-5)]


def kernel(**changes: object) -> tb.Launch:
    given = {"stream": 0, "duration": 1e-5, "meets": "a", "gpu": 0, "host": 0, **changes}
    return tb.Launch(2, 32, 16, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([kernel(), kernel(gpu=2, host=2)], "2 GPUs, but the sequence needs 3"),
        ([kernel(), kernel(gpu=1)], "host 0 launches on GPUs 0 and 1"),
        ([kernel(), tb.Memset(8, stream=1)], "event 1 is a Memset"),
        (
            [kernel(), kernel(gpu=1, host=1), tb.HostCall("x", waits="device", gpu=1)],
            "event 2: host 0 waits for GPU 1, but launches on GPU 0",
        ),
        ([kernel(), tb.HostCall("x", duration=1e-6, host=5)], "host 5 launches nothing"),
        ([kernel(in_block_order=True)], r"event 0: Launch\.in_block_order cannot"),
        ([tb.Launch(2, 32, 16)], "need launches with durations"),
    ],
    ids=["gpus", "host", "memset", "other", "nothing", "order", "held"],
)
def test_what_cannot_be_observed_is_refused(events: list[tb.Launch], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_several(tb.Sequence(events), 2)
