"""Does the real GPU run timed sequences as the launcher means it to?"""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import tbsched as tb
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu

# A handover from one block to the next, a clock that is read on two SMs.
NEAR_NS = 20_000


def run(blocks: int = 1, seconds: float = 0.002, **others: object) -> tb.Launch:
    return tb.Launch(blocks, 32, 16, duration=seconds, **others)  # type: ignore[arg-type]


def spans(trace: tb.Trace) -> list[tuple[int, int]]:
    found = []
    for placement in trace:
        assert placement.start_ns is not None
        assert placement.end_ns is not None
        found.append((int(placement.start_ns.min()), int(placement.end_ns.max())))
    return found


def test_blocks_leave_within_a_millisecond_after_their_durations(gpu: Gpu) -> None:
    blocks = 2 * gpu.info.sms
    durations = tuple(np.linspace(20e-6, 5e-3, blocks).tolist())
    rows = gpu.observe(tb.Sequence([tb.Launch(blocks, 1024, 32, duration=durations)])).timeline
    late = rows["end_ns"] - rows["start_ns"] - np.array(durations) * 1e9
    print(f"late by {np.median(late):.0f} ns, 99th percentile {np.percentile(late, 99):.0f} ns")
    assert late.min() > -100
    assert np.percentile(late, 99) < 1_000_000


def test_what_waits_for_room_starts_when_blocks_leave(gpu: Gpu) -> None:
    full = tb.Launch(2 * gpu.info.sms, 1024, 32, duration=0.002)
    first, second = spans(gpu.observe(tb.Sequence([full, full])))
    assert abs(second[0] - first[1]) < 2 * NEAR_NS


def test_one_stream_is_serial_and_two_are_not(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([run(stream=1), run(stream=1), run(stream=2), run()]))
    assert not trace.concurrent(0, 1)
    assert trace.concurrent(0, 2)
    assert trace.concurrent(0, 3)


def test_a_stream_waits_for_an_event(gpu: Gpu) -> None:
    seq = tb.Sequence(
        [run(stream=1), tb.RecordEvent(0, 1), run(stream=1), tb.WaitEvent(0, 2), run(stream=2)]
    )
    trace = gpu.observe(seq)
    assert spans(trace)[2][0] >= spans(trace)[0][1]
    assert trace.concurrent(1, 2)


def test_the_legacy_stream_waits_and_is_waited_for(gpu: Gpu) -> None:
    seq = tb.Sequence([run(stream=1), run(stream="legacy"), run(stream=2)])
    a, legacy, b = spans(gpu.observe(seq))
    assert legacy[0] >= a[1]
    assert b[0] >= legacy[1]


@pytest.mark.parametrize("how", ["deadline", "interrupt"])
def test_blocks_are_ended_before_their_durations(gpu: Gpu, how: str) -> None:
    full = tb.Launch(2 * gpu.info.sms, 1024, 32, duration=50.0, stream=0)
    begin = time.monotonic()
    if how == "deadline":
        with pytest.raises(tb.DeadlineExceeded):
            gpu.observe(tb.Sequence([full, full, full]), deadline=0.3)
    else:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            gpu.observe(tb.Sequence([full, full, full]))
    assert time.monotonic() - begin < 2
    assert gpu.observe(tb.Sequence([tb.Launch(gpu.info.sms, 1024, 32)]))[0].placed == gpu.info.sms
