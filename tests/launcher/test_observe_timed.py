"""Timed sequences through the launcher, against a driver that emulates a GPU of four SMs."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import tbsched as tb
from helpers import Fake
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.usefixtures("punctual")

SMS = 4
# Times on the fake GPU are those of a thread of a busy machine.
LATE_NS = 50_000_000


def run(blocks: int = 1, seconds: float = 0.01, **others: object) -> tb.Launch:
    return tb.Launch(blocks, 32, 16, duration=seconds, **others)  # type: ignore[arg-type]


def start(trace: tb.Trace, launch: int) -> int:
    start_ns = trace[launch].start_ns
    assert start_ns is not None
    return int(start_ns.min())


def end(trace: tb.Trace, launch: int) -> int:
    end_ns = trace[launch].end_ns
    assert end_ns is not None
    return int(end_ns.max())


def test_blocks_stay_for_their_durations(gpu: Gpu) -> None:
    durations = (0.002, 0.03, 0.0, 0.011)
    trace = gpu.observe(tb.Sequence([tb.Launch(4, 32, 16, duration=durations), run()]))
    rows = trace.timeline
    stayed = rows["end_ns"] - rows["start_ns"]
    least = np.array([*durations, 0.01]) * 1e9 - 64
    assert (stayed >= least).all()
    assert (stayed < least + LATE_NS).all()
    assert (rows["sm"] >= 0).all()
    assert rows["start_ns"].min() == 0
    assert trace.makespan >= 0.03 - 1e-6


def test_what_waits_for_room_runs_when_there_is_some(gpu: Gpu) -> None:
    full = tb.Launch(2 * SMS, 1024, 32, duration=0.01)
    trace = gpu.observe(tb.Sequence([full, full]))
    ends = trace[0].end_ns
    assert ends is not None
    assert start(trace, 1) >= ends.min() - 1000  # blocks that end first make room first
    assert trace[1].placed == 2 * SMS


def test_one_stream_is_serial_and_two_are_not(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([run(stream=1), run(stream=1), run(stream=2), run()]))
    assert not trace.concurrent(0, 1)
    assert trace.concurrent(0, 2)
    assert trace.concurrent(0, 3)


def test_a_wait_is_for_the_record_before_it(gpu: Gpu) -> None:
    seq = tb.Sequence(
        [
            run(stream=1),
            tb.RecordEvent(7, 1),
            run(stream=1),
            tb.WaitEvent(7, 2),
            tb.WaitEvent(8, 2),
            run(stream=2),
        ]
    )
    trace = gpu.observe(seq)
    assert start(trace, 2) >= end(trace, 0) - 1000
    assert trace.concurrent(1, 2)


def test_the_legacy_stream_waits_and_is_waited_for(gpu: Gpu) -> None:
    seq = tb.Sequence([run(stream=1), run(stream="legacy"), run(stream=2), run(stream=3)])
    trace = gpu.observe(seq)
    assert start(trace, 1) >= end(trace, 0) - 1000
    assert start(trace, 2) >= end(trace, 1) - 1000
    assert trace.concurrent(2, 3)


def test_an_event_recorded_in_the_legacy_stream_is_of_all_work(gpu: Gpu) -> None:
    seq = tb.Sequence(
        [run(stream=1), tb.RecordEvent(0, "legacy"), tb.WaitEvent(0, 2), run(stream=2)]
    )
    trace = gpu.observe(seq)
    assert start(trace, 1) >= end(trace, 0) - 1000


def test_a_more_urgent_stream_takes_room_first(gpu: Gpu) -> None:
    full = tb.Launch(2 * SMS, 1024, 32, duration=0.01)
    more = tb.Launch(2 * SMS, 1024, 32, duration=0.01, priority=-1)
    trace = gpu.observe(tb.Sequence([full, full, more]))
    assert end(trace, 2) <= start(trace, 1) + 1000


def test_the_host_says_when_it_issued_each_launch(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([run(), run(), run()]))
    issued = trace.issue_times
    assert issued is not None
    assert len(issued) == 3
    assert issued[0] == 0
    assert list(issued) == sorted(issued)
    assert tb.Trace(trace.sequence, trace.device, trace.placements).makespan == trace.makespan


def test_a_launch_of_its_own_comes_before_every_timed_sequence(gpu: Gpu, knobs: Fake) -> None:
    """The first call after a while is slow: it must not be one whose time counts."""
    held, timed = tb.Sequence([tb.Launch(1, 32, 16)]), tb.Sequence([run()])
    made = [knobs["launches"]]
    for seq in (held, held, timed, timed):
        gpu.observe(seq)
        made.append(knobs["launches"])
    assert np.diff(made).tolist()[1:] == [1, 2, 2]


def test_a_sequence_of_events_alone_runs(gpu: Gpu) -> None:
    assert len(gpu.observe(tb.Sequence([tb.RecordEvent(0, 1), tb.WaitEvent(0, "legacy")]))) == 0


def test_warp_slots_of_a_timed_sequence(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([tb.Launch(2, 80, 16, duration=0.001)]), warp_slots=True)
    assert trace[0].warp_slots is not None
    assert trace[0].warp_slots.tolist() == [[0, 1, 2]] * 2


def test_streams_and_events_are_given_back(gpu: Gpu, knobs: Fake) -> None:
    seq = tb.Sequence([run(stream=1), tb.RecordEvent(0, 1), tb.WaitEvent(0, 2), run(stream=2)])
    gpu.observe(seq)
    kept = [(knobs[key], knobs[f"{key}_destroyed"]) for key in ("streams", "events")]
    gpu.observe(seq)
    made = [(knobs[key], knobs[f"{key}_destroyed"]) for key in ("streams", "events")]
    assert [(a[0] - b[0], a[1] - b[1]) for a, b in zip(made, kept, strict=True)] == [(2, 2), (1, 1)]


def test_held_blocks_are_observed_as_before_afterwards(gpu: Gpu) -> None:
    gpu.observe(tb.Sequence([run(3)]))
    trace = gpu.observe(tb.Sequence([tb.Launch(2 * SMS, 1024, 32), tb.Launch(1, 32, 16)]))
    assert [placement.placed for placement in trace] == [2 * SMS, 0]


LONG = tb.Sequence([run(SMS, 50.0), run(SMS, 50.0, stream=1), run(SMS, 50.0, stream=1)])


def all_gone(gpu: Gpu) -> None:
    begin = time.monotonic()
    assert gpu.observe(tb.Sequence([run(2 * SMS, 0.001)]))[0].placed == 2 * SMS
    assert time.monotonic() - begin < 3


def test_deadline_ends_blocks_before_their_durations(gpu: Gpu) -> None:
    begin = time.monotonic()
    with pytest.raises(tb.DeadlineExceeded, match="launch 2: 0 of 4 blocks started"):
        gpu.observe(LONG, deadline=0.3)
    assert time.monotonic() - begin < 3
    all_gone(gpu)


def test_interrupt_ends_blocks_before_their_durations(gpu: Gpu) -> None:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        gpu.observe(LONG)
    assert time.monotonic() - begin < 3
    all_gone(gpu)


@pytest.mark.parametrize(
    "call", ["cuLaunchKernelEx", "cuEventRecord", "cuStreamWaitEvent", "cuEventCreate"]
)
def test_a_call_that_fails_is_named_and_blocks_end(gpu: Gpu, knobs: Fake, call: str) -> None:
    gpu.observe(tb.Sequence([tb.Launch(1, 32, 16)]))
    knobs.fail(call)
    events = [run(SMS, 50.0, stream=1), tb.RecordEvent(0, 1), tb.WaitEvent(0, 2)]
    begin = time.monotonic()
    with pytest.raises(tb.CudaError) as caught:
        gpu.observe(tb.Sequence(events))
    assert caught.value.call == call
    assert time.monotonic() - begin < 3
    all_gone(gpu)


def test_a_failing_call_behind_the_last_launch_is_not_overlooked(gpu: Gpu, knobs: Fake) -> None:
    gpu.observe(tb.Sequence([tb.Launch(1, 32, 16)]))
    knobs.fail("cuEventRecord")
    with pytest.raises(tb.CudaError, match="cuEventRecord"):
        gpu.observe(tb.Sequence([run(1, 0.0, stream=1), tb.RecordEvent(0, 1)]))


def test_block_that_moved_is_unstable(gpu: Gpu, knobs: Fake) -> None:
    knobs["moved"] = 1
    with pytest.raises(tb.UnstableMeasurement, match="moved from SM 0 to SM 1"):
        gpu.observe(tb.Sequence([run()]))


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (run(1, 60.1), r"Launch\.duration: 60100000000 is outside 0\.\.60000000000 ns"),
        (run(stream="legacy", priority=-1), r"Launch\.priority: -1 is outside 0\.\.0"),
    ],
)
def test_what_cannot_be_timed_is_refused(gpu: Gpu, launch: tb.Launch, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gpu.observe(tb.Sequence([launch]))


def test_too_many_streams_are_refused(gpu: Gpu) -> None:
    with pytest.raises(ValueError, match=r"Launch\.stream: 1025 streams .* at most 1024"):
        gpu.observe(tb.Sequence([run()] * 1025))
    with pytest.raises(ValueError, match=r"Launch\.stream: 1025 streams .* at most 1024"):
        gpu.observe(tb.Sequence([run(), *(tb.RecordEvent(0, k) for k in range(1024))]))


def test_the_deadline_that_nobody_gave_is_one_that_may_be_given(gpu: Gpu) -> None:
    assert gpu._deadline(tb.Sequence([tb.Launch(64 * SMS, 32, 16, duration=60.0)]), None) == 3600


def test_timed_sequences_are_not_repeated(gpu: Gpu) -> None:
    with pytest.raises(ValueError, match="repeats: 2 must be 1"):
        gpu.observe(tb.Sequence([run()]), repeats=2)


def test_copies_and_memsets_are_issued_in_their_streams(gpu: Gpu, knobs: Fake) -> None:
    kernel = tb.Launch(1, 32, 16, duration=1e-5, stream=0)
    program = [
        kernel, tb.Copy(1 << 16, "h2d", stream=0), tb.Copy(8, "d2h", stream=1, pinned=False),
        tb.Copy(1 << 17, "d2d"), tb.Memset(64, stream=2, non_blocking=True), kernel,
    ]  # fmt: skip
    before = {name: knobs[name] for name in ("h2d", "d2h", "d2d", "memsets", "streams")}
    found = gpu.observe(tb.Sequence(program))
    assert {name: knobs[name] - count for name, count in before.items()} == {
        "h2d": 1, "d2h": 1, "d2d": 1, "memsets": 1, "streams": 4,
    }  # fmt: skip
    assert found.placements[1].start_ns.min() >= found.placements[0].end_ns.max()
    assert found.transfer_ns is None


def test_a_copy_that_blocks_is_waited_for(gpu: Gpu, knobs: Fake) -> None:
    before = knobs["synchronized"]
    gpu.observe(tb.Sequence([run(stream=0), tb.Copy(8, "d2h", stream=0, blocking=True)]))
    assert knobs["synchronized"] == before + 1


def test_a_program_of_copies_alone_is_played(gpu: Gpu, knobs: Fake) -> None:
    before = knobs["h2d"]
    assert len(gpu.observe(tb.Sequence([tb.Copy(8, "h2d", stream=0)]))) == 0
    assert knobs["h2d"] == before + 1
