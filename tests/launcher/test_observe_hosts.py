"""Host threads and what they wait for, on a driver that emulates a GPU of four SMs."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import tbsched as tb
from helpers import Fake
from launcher.test_observe_timed import SMS, all_gone, end, run, start
from tbsched.launcher.observe import Gpu


@pytest.mark.parametrize(
    "awaited",
    [
        tb.Synchronize(),
        tb.Synchronize(stream=1),
        tb.Synchronize(event=3),
        tb.Synchronize(stream="legacy"),
    ],
)
def test_a_host_goes_on_when_the_work_is_over(gpu: Gpu, awaited: tb.Synchronize) -> None:
    events = [run(stream=1), tb.RecordEvent(3, 1), awaited, run(stream=2)]
    trace = gpu.observe(tb.Sequence(events))
    assert start(trace, 1) >= end(trace, 0)
    without = gpu.observe(tb.Sequence([*events[:2], events[3]]))
    assert start(without, 1) < end(without, 0)


@pytest.mark.parametrize(
    "call",
    [
        tb.HostCall("cudaFree", 0.05, waits="device"),
        tb.HostCall("cudaFree", 0.05, waits="stream", stream=1),
    ],
)
def test_a_host_call_waits_and_takes_its_duration(gpu: Gpu, call: tb.HostCall) -> None:
    trace = gpu.observe(tb.Sequence([run(stream=1), call, run(stream=2)]))
    assert start(trace, 1) >= end(trace, 0)
    assert trace.call_times is not None
    began, returned = trace.call_times[1]
    assert returned - began >= 0.05
    at_once = tb.HostCall("cudaMalloc", 0.0)
    without = gpu.observe(tb.Sequence([run(stream=1), at_once, run(stream=2)]))
    assert start(without, 1) < end(without, 0)


def test_child_graphs_run(gpu: Gpu) -> None:
    child = tb.Graph([run(), run()], edges=[(0, 1)])
    trace = gpu.observe(tb.Sequence([tb.Graph([run(), child], edges=[(0, 1)]).launch(0)]))
    assert end(trace, 0) <= start(trace, 1) <= end(trace, 1) <= start(trace, 2)


def test_host_functions_are_called_by_the_driver(gpu: Gpu, knobs: Fake) -> None:
    graph = tb.Graph([run(), tb.HostFunction(1e-6), run()], edges=[(0, 1), (1, 2)])
    before = knobs["host_functions"]
    gpu.observe(tb.Sequence([tb.HostFunction(1e-6, stream=1), run(stream=1), graph.launch(0)]))
    assert knobs["host_functions"] == before + 2


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (tb.HostCall("f", holds=True), r"HostCall\.holds: True, .* it can only be predicted"),
        (tb.HostCall("f", 100.0), r"HostCall\.duration: 100000000000 ns is outside 0\.\."),
        (tb.HostFunction(100.0, stream=0), r"HostFunction\.duration: 100000000000 ns is outside"),
    ],
)
def test_what_is_not_run_on_a_gpu_is_refused(gpu: Gpu, event: tb.HostCall, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gpu.observe(tb.Sequence([run(stream=0), event]))


def test_a_stream_waits_for_a_value_that_is_written_later(gpu: Gpu) -> None:
    wait, write = tb.WaitValue("x", 2, stream=1), tb.WriteValue("x", 2, stream=0)
    events = [wait, run(stream=1), run(stream=0), write, run(stream=2)]
    trace = gpu.observe(tb.Sequence(events))
    assert start(trace, 0) >= end(trace, 1)
    assert start(trace, 2) < end(trace, 1)
    less = gpu.observe(tb.Sequence([tb.WaitValue("x", 0, stream=1), *events[1:]]))
    assert start(less, 0) < end(less, 1)


def test_values_have_names_and_are_zero_at_the_start_of_each_run(gpu: Gpu) -> None:
    written = tb.Sequence([run(stream=0), tb.WriteValue("x", 3, stream=0)])
    gpu.observe(written)
    awaits = [tb.WaitValue("x", stream=1), run(stream=1)]
    other = [tb.WriteValue("y", stream=2), run(stream=0, seconds=0.05)]
    trace = gpu.observe(tb.Sequence([*awaits, *other, tb.WriteValue("x", stream=0)]))
    assert start(trace, 0) >= end(trace, 1)


def test_deadline_ends_waits_for_values_that_nobody_writes(gpu: Gpu) -> None:
    waits = [tb.WaitValue("x", 5, stream=1), tb.WriteValue("x", 1, stream=1)]
    hangs = tb.Sequence([run(stream=0), *waits, tb.WaitValue("x", 2, stream=1), run(stream=1)])
    begin = time.monotonic()
    with pytest.raises(tb.DeadlineExceeded, match="and has left"):
        gpu.observe(hangs, deadline=0.3)
    assert time.monotonic() - begin < 3
    all_gone(gpu)


def test_a_host_waits_for_no_more_than_it_names(gpu: Gpu) -> None:
    slow = run(stream=1, seconds=0.1)
    for awaited in (tb.Synchronize(stream=2), tb.Synchronize(event=3), tb.Synchronize(event=9)):
        events = [slow, run(stream=2), tb.RecordEvent(3, 2), awaited, run(stream=3)]
        trace = gpu.observe(tb.Sequence(events))
        assert start(trace, 2) < end(trace, 0)


def test_threads_begin_together_and_one_that_waits_holds_up_no_other(gpu: Gpu) -> None:
    waits = [run(stream=1, seconds=0.1), tb.Synchronize(), run(stream=1)]
    goes_on = [run(stream=2, host=1), tb.Synchronize(stream=2, host=1), run(stream=2, host=1)]
    trace = gpu.observe(tb.Sequence([*waits, *goes_on]))
    assert start(trace, 3) >= end(trace, 2)
    assert start(trace, 3) < end(trace, 0) <= start(trace, 1)
    assert trace.issue_times is not None
    assert min(trace.issue_times) == 0


def test_the_gaps_between_calls_are_those_without_the_waits(gpu: Gpu) -> None:
    events = [run(stream=1, seconds=0.1), tb.Synchronize(), run(stream=2, host=1), run(stream=1)]
    trace = gpu.observe(tb.Sequence(events))
    assert trace.host_gaps is not None
    assert len(trace.host_gaps) == 4
    assert trace.issue_times is not None
    assert min(trace.host_gaps) >= 0
    assert sum(trace.host_gaps) < 0.1 <= trace.issue_times[2]
    again = tb.predict(trace.sequence, "h200", host=trace.host_gaps)
    assert again.issue_times is not None
    assert again.issue_times[2] >= 0.1


HANGS = tb.Sequence(
    [
        run(SMS, 50.0),
        tb.Synchronize(),
        run(),
        run(SMS, 50.0, host=1, stream=1),
        tb.Synchronize(stream=1, host=1),
        tb.RecordEvent(0, 1, host=2),
        tb.Synchronize(event=0, host=2),
    ]
)


def test_deadline_ends_what_hosts_wait_for(gpu: Gpu) -> None:
    begin = time.monotonic()
    with pytest.raises(tb.DeadlineExceeded):
        gpu.observe(HANGS, deadline=0.3)
    assert time.monotonic() - begin < 3
    all_gone(gpu)


def test_interrupt_ends_what_hosts_wait_for(gpu: Gpu) -> None:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        gpu.observe(HANGS)
    assert time.monotonic() - begin < 3
    all_gone(gpu)


@pytest.mark.parametrize(
    "call", ["cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize", "cuEventRecord"]
)
def test_a_call_that_fails_ends_all_threads(gpu: Gpu, knobs: Fake, call: str) -> None:
    gpu.observe(tb.Sequence([tb.Launch(1, 32, 16)]))
    knobs.fail(call)
    begin = time.monotonic()
    with pytest.raises(tb.CudaError) as caught:
        gpu.observe(HANGS)
    assert caught.value.call == call
    assert time.monotonic() - begin < 3
    all_gone(gpu)


def test_first_use_is_for_predictions_alone(gpu: Gpu) -> None:
    with pytest.raises(
        ValueError, match=r"launch 1: Launch\.first_use: True, .* only be predicted"
    ):
        gpu.observe(tb.Sequence([run(), run(first_use=True)]))
