"""Launches with durations whose blocks wait for each other, on a fake GPU of four SMs."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

import tbsched as tb
from helpers import Fake
from tbsched.launcher.observe import Gpu

pytest.importorskip("tbsched._launcher", reason="built without nvcc")

SMS = 4
FOREVER = 1.0
FULL = tb.Launch(2 * SMS, 1024, 32, duration=FOREVER)
HALF = tb.Launch(SMS, 1024, 32, duration=FOREVER)
ONE = tb.Launch(1, 32, 16, duration=FOREVER)


def meet(gpu: Gpu, *events: Any, **options: Any) -> tb.Meeting:
    return tb.meet(tb.Sequence(events), gpu=gpu, **{"limit": 0.01, **options})


def still_works(gpu: Gpu) -> bool:
    return meet(gpu, replace(FULL, duration=None)).met == (True,)


def test_who_fits_meets_at_once(gpu: Gpu) -> None:
    begin = time.monotonic()
    found = meet(gpu, HALF, HALF)
    assert (found.met, found.missing) == ((True,), {})
    assert (found.trace[0].smid >= 0).all()
    assert time.monotonic() - begin < FOREVER
    assert still_works(gpu)


def test_who_does_not_fit_hangs(gpu: Gpu) -> None:
    begin = time.monotonic()
    found = meet(gpu, HALF, FULL)
    assert (found.met, found.missing) == ((False,), {1: SMS})
    assert found.trace[1].smid.tolist().count(-1) == SMS
    assert time.monotonic() - begin < FOREVER
    assert still_works(gpu)


def test_a_block_leaves_its_duration_after_it_has_met(gpu: Gpu) -> None:
    short = [replace(HALF, duration=1e-4), replace(HALF, duration=1e-4, stream=0)]
    assert meet(gpu, *short, replace(FULL, duration=1e-4), groups=[[0, 1], [2]]).met == (True, True)


def test_blocks_in_no_group_leave_by_themselves(gpu: Gpu) -> None:
    found = meet(gpu, replace(FULL, duration=2e-3), FULL, groups=[[1]])
    assert found.met == (True,)
    assert found.trace[0].end_ns is not None
    assert found.trace[0].end_ns.max() < 0.05e9


def test_a_launch_behind_another_of_its_stream_hangs(gpu: Gpu) -> None:
    first = replace(ONE, stream=0)
    assert meet(gpu, first, first).missing == {1: 1}
    assert meet(gpu, first, replace(ONE, stream=1)).met == (True,)


def test_a_launch_behind_the_legacy_stream_hangs(gpu: Gpu) -> None:
    legacy, other = replace(ONE, stream="legacy"), replace(ONE, stream=1)
    assert meet(gpu, legacy, other).missing == {1: 1}
    assert meet(gpu, other, legacy).missing == {1: 1}
    apart = replace(other, non_blocking=True)
    assert meet(gpu, legacy, apart).met == (True,)


def test_an_event_keeps_a_launch_back(gpu: Gpu) -> None:
    events = (tb.RecordEvent(0, stream=0), tb.WaitEvent(0, stream=1))
    first, second = replace(ONE, stream=0), replace(ONE, stream=1)
    assert meet(gpu, first, *events, second).missing == {1: 1}
    assert meet(gpu, first, *events, second, groups=[[0], [1]]).met == (True, False)


def test_a_host_that_waits_never_makes_the_next_call(gpu: Gpu) -> None:
    assert meet(gpu, ONE, tb.Synchronize(), ONE, limit=0.002).missing == {1: 1}
    assert still_works(gpu)


def test_nodes_of_graphs_meet(gpu: Gpu) -> None:
    apart, behind = tb.Graph([HALF, HALF]), tb.Graph([HALF, HALF], edges=[(0, 1)])
    assert meet(gpu, apart.launch(stream=0)).met == (True,)
    assert meet(gpu, behind.launch(stream=0)).missing == {1: SMS}
    assert meet(gpu, behind.launch(stream=0), groups=[[0], [1]]).met == (True, False)


def test_who_needs_more_local_memory_waits_for_an_idle_gpu(gpu: Gpu, knobs: Fake) -> None:
    large = replace(ONE, local_memory=knobs["local_memory"] + 4096)
    knobs["growing_blocks"] = 1
    assert meet(gpu, ONE, large, limit=0.002).missing == {1: 1}
    assert still_works(gpu)


def test_launches_come_when_they_are_called(gpu: Gpu) -> None:
    gone = replace(FULL, duration=5e-3)
    found = meet(gpu, gone, FULL, groups=[[1]], issue_times=[0.0, 0.05], limit=0.01)
    assert found.met == (True,)
    times = found.trace.issue_times
    assert times is not None
    assert times[1] - times[0] > 0.04


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0.0], "1 times for 2 launches"),
        ([1.0, 0.5], "times ascend"),
        ([0.0, 100.0], "times ascend, to at most 10 seconds"),
        ([-1.0, 0.0], r"issue_times: -1\.0 is outside"),
    ],
)
def test_wrong_times_are_refused(gpu: Gpu, times: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        meet(gpu, ONE, ONE, issue_times=times)


def test_times_need_durations(gpu: Gpu) -> None:
    with pytest.raises(ValueError, match="times need launches with durations"):
        meet(gpu, tb.Launch(1, 32, 16), issue_times=[0.0])
    with pytest.raises(TypeError, match="issue_times: a list is needed"):
        meet(gpu, ONE, issue_times=0.0)


def test_launches_that_do_something_on_their_way_are_in_no_group(gpu: Gpu) -> None:
    triggers = replace(ONE, stream=0, trigger=1e-6)
    with pytest.raises(ValueError, match=r"groups\[0\]: launch 0 has a trigger or a memory_wait"):
        meet(gpu, triggers)
    dependent = replace(ONE, stream=0, programmatic=True)
    assert meet(gpu, triggers, dependent, groups=[[1]]).met == (True,)


def test_many_in_a_row(gpu: Gpu) -> None:
    sequences = [tb.Sequence([HALF, HALF]), tb.Sequence([HALF, FULL])] * 10
    found = list(tb.meet_many(sequences, gpu=gpu, limit=0.01))
    assert [one.met for one in found if isinstance(one, tb.Meeting)] == [(True,), (False,)] * 10


def test_interrupt_in_a_hang_releases_everything(gpu: Gpu) -> None:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        meet(gpu, FULL, HALF, limit=5.0, issue_times=[0.0, 8.0])
    assert time.monotonic() - begin < 3
    assert still_works(gpu)


def test_deadline_in_a_hang(gpu: Gpu) -> None:
    with pytest.raises(tb.DeadlineExceeded, match="every block has been told to leave"):
        meet(gpu, FULL, HALF, limit=5.0, deadline=0.2)
    assert still_works(gpu)
