"""Predictions of what hosts do beside launching: functions, calls, and values in memory."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Literal

import pytest

from helpers import gpu
from tbsched.advice.bounds import makespan_bounds
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.prediction.processes import predict_processes
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Event,
    Graph,
    HostCall,
    HostFunction,
    Launch,
    Memset,
    RecordEvent,
    Sequence,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)
from tbsched.traces.hang import Hang
from tbsched.traces.trace import Trace

US = 1e-6
KERNEL = Launch(1, 32, 16, stream=0, duration=10 * US)
OTHER = Launch(1, 32, 16, stream=1, duration=1 * US)
GPU = gpu(sms=4)


def starts(trace: Trace) -> list[int]:
    """When each launch starts, in microseconds."""
    return [int(rows.start_ns.min()) // 1000 for rows in trace if rows.start_ns is not None]


def test_stream_waits_for_its_host_function_and_no_other_does() -> None:
    program = [KERNEL, HostFunction(5 * US, stream=0), KERNEL, OTHER]
    trace = predict(Sequence(program), GPU)
    assert starts(trace) == [0, 15, 0]
    assert trace.transfer_ns is not None
    assert trace.transfer_ns.tolist() == [[10_000, 15_000]]
    assert "for host function 0 (a function of the host" in trace.explain(1)


def test_host_function_in_the_legacy_stream_holds_up_all_blocking_streams() -> None:
    program = [HostFunction(5 * US, stream=LEGACY_STREAM, name="log"), OTHER]
    trace = predict(Sequence(program), GPU)
    assert starts(trace) == [5]
    assert trace[0].limiter == "legacy_stream"


def test_host_function_counts_in_how_long_all_takes() -> None:
    text = str(predict(Sequence([HostFunction(5 * US, stream=0), KERNEL]), GPU))
    assert "makespan 10 us of the kernels; 15 us with copies, memsets and host functions" in text


def test_host_function_ends_before_its_stream_learns_of_it() -> None:
    spec = replace(GPU, host_function_return_ns=3_000)
    found = predict(Sequence([HostFunction(20 * US, stream=0), KERNEL]), spec, host=0.0)
    assert found.transfer_ns is not None
    [[begin, end]] = found.transfer_ns.tolist()
    assert end - begin == 20_000
    assert found[0].start_ns is not None
    assert found[0].start_ns[0] >= end + 3_000


def test_host_function_is_a_node_of_a_graph() -> None:
    node = Launch(1, 32, 16, duration=10 * US)
    graph = Graph([node, HostFunction(5 * US), node], edges=[(0, 1), (1, 2)])
    assert starts(predict(Sequence([graph.launch(0)]), GPU)) == [0, 15]
    root = Graph([HostFunction(5 * US), node, HostFunction(8 * US), node], edges=[(0, 1), (2, 3)])
    assert starts(predict(Sequence([root.launch(0)]), GPU)) == [5, 13]


def two_functions(gpu: DeviceSpec) -> list[int]:
    functions = [HostFunction(5 * US, stream=stream) for stream in (0, 1)]
    return starts(predict(Sequence([*functions, KERNEL, OTHER]), gpu))


def test_one_thread_of_the_driver_calls_all_host_functions() -> None:
    assert two_functions(GPU) == [5, 10]
    free = replace(GPU.mechanisms, host_functions_in_turn=False)
    assert two_functions(replace(GPU, mechanisms=free)) == [5, 5]


def test_the_thread_that_calls_host_functions_takes_the_one_issued_first() -> None:
    """While the thread wakes up for the function of stream 1, that of stream 0 may begin, too."""
    slow = replace(GPU, host_function_latency_ns=50_000, host_function_direct_ns=40_000)

    def kernels_behind(us: float) -> list[int]:
        before = [replace(KERNEL, duration=us * US), OTHER]
        functions = [HostFunction(5 * US, stream=0), HostFunction(7 * US, stream=1)]
        return starts(predict(Sequence([*before, *functions, KERNEL, OTHER]), slow))[2:]

    assert kernels_behind(us=40) == [1 + 50 + 5, 1 + 50 + 5 + 7]
    # The thread does not see it yet.
    assert kernels_behind(us=45) == [1 + 50 + 7 + 5, 1 + 50 + 7]


def test_the_thread_that_calls_host_functions_sleeps_while_there_are_none() -> None:
    slow = replace(
        GPU, host_function_latency_ns=50_000, host_function_direct_ns=20_000,
        host_function_turn_ns=2_000, host_function_return_ns=3_000,
    )  # fmt: skip
    assert two_functions(slow) == [20 + 5 + 3, 20 + 5 + 2 + 5 + 3]
    later = [HostFunction(5 * US, stream=0), KERNEL, HostFunction(0.0, stream=0), KERNEL]
    assert starts(predict(Sequence(later), slow)) == [28, 38 + 50 + 3]
    row = [KERNEL, *[HostFunction(5 * US, stream=0)] * 3, KERNEL]
    assert starts(predict(Sequence(row), slow)) == [0, 10 + 50 + 3 * (5 + 3)]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (HostCall("cudaMalloc", 3 * US), 3),
        (HostCall("cudaFree", 3 * US, waits="device"), 23),
        (HostCall("cudaStreamSynchronize", 3 * US, waits="stream", stream=0), 13),
        (HostCall("cudaStreamSynchronize", 3 * US, waits="stream", stream=5), 3),
    ],
)
def test_host_call_waits_and_then_takes_its_duration(call: HostCall, expected: int) -> None:
    longer = Launch(1, 32, 16, stream=2, duration=20 * US)
    program = Sequence([KERNEL, longer, call, OTHER])
    assert starts(predict(program, GPU))[2] == expected
    assert starts(predict(program, GPU, host=0.0))[2] == expected


def test_host_call_holds_up_its_own_thread_alone() -> None:
    calls = [HostCall("cudaMalloc", 5 * US), KERNEL]
    program = [*calls, Launch(1, 32, 16, stream=1, duration=US, host=1)]
    assert starts(predict(Sequence(program), GPU)) == [5, 0]


@pytest.mark.parametrize("holds", [True, False])
def test_host_call_may_hold_the_driver(holds: bool) -> None:
    """After what it waits for: thread 2 launches meanwhile."""
    others = [Launch(1, 32, 16, stream=each, duration=US, host=each) for each in (1, 2)]
    call = HostCall("cudaHostAlloc", 20 * US, waits="device", holds=holds)
    gaps = (0.0, 0.0, 2 * US, 15 * US)
    found = predict(Sequence([KERNEL, call, others[0], others[1]]), GPU, host=gaps)
    assert found.call_times is not None
    returned = [round(times[1] / US) for times in found.call_times]
    assert returned == [0, 30, 2, 30 if holds else 15]


def test_host_call_may_hold_the_driver_while_it_waits() -> None:
    """Calls that give the GPU work wait for it: a launch, a copy, and a call like it."""
    others: list[Event] = [
        Launch(1, 32, 16, stream=1, duration=US, host=1),
        Copy(64, "h2d", stream=2, host=2),
        HostCall("cuModuleUnload", US, holds="throughout", host=3),
        Synchronize(stream=3, host=4),
    ]
    call = HostCall("cuModuleLoadData", 20 * US, waits="device", holds="throughout")
    found = predict(Sequence([KERNEL, call, *others]), GPU, host=[0.0, 0.0, *[2 * US] * 4])
    assert found.call_times is not None
    returned = [round(times[1] / US) for times in found.call_times]
    assert returned == [0, 30, 30, 30, 31, 2]


def test_host_call_that_holds_the_driver_may_wait_for_what_it_holds_up() -> None:
    def hang(holds: bool | Literal["throughout"]) -> Hang | None:
        first, last = replace(KERNEL, meets="x"), replace(OTHER, meets="x", host=1)
        call = HostCall("cuModuleLoadData", waits="device", holds=holds)
        return predict(Sequence([first, call, last]), GPU, host=[0.0, 0.0, US]).hang

    found = hang("throughout")
    assert found is not None
    assert found.calls == (1, 2)
    assert [(step.launch, step.other, step.cause) for step in found.cycle] == [
        (0, 1, "meets"),
        (1, 0, "host"),
    ]
    assert hang(True) is None


def test_given_times_include_what_host_calls_take() -> None:
    program = Sequence([KERNEL, HostCall("cudaFree", 1.0, waits="device"), OTHER])
    assert starts(predict(program, GPU, issue_times=[0.0, 2 * US])) == [0, 2]


def test_stream_waits_for_a_value_that_is_written_later() -> None:
    program = [WaitValue("ready", stream=1), OTHER, KERNEL, WriteValue("ready", stream=0)]
    trace = predict(Sequence(program), GPU)
    assert starts(trace) == [10, 0]
    assert trace[0].limiter == "value"
    assert "for a value in memory written after launch 1" in trace.explain(0)


def test_wait_for_a_value_holds_up_its_hardware_queue() -> None:
    wait, write = WaitValue("x", stream=1), WriteValue("x", stream=2)
    held = [KERNEL, wait, Launch(1, 32, 16, stream=3, duration=US), write]
    assert starts(predict(Sequence(held), GPU, connections=4)) == [0, 0]
    hangs = predict(Sequence([wait, KERNEL, WriteValue("x", stream=0)]), GPU, connections=1)
    assert hangs.hang is not None
    assert [each.launch for each in hangs.hang.stranded] == [0]
    assert "until the value 'x' is at least 1; it is 0" in hangs.hang.text
    free = replace(GPU.mechanisms, value_waits_hold_queues=False)
    free_gpu = replace(GPU, mechanisms=free)
    program = Sequence([wait, KERNEL, WriteValue("x", stream=0), OTHER])
    assert starts(predict(program, free_gpu, connections=1)) == [0, 10]
    assert starts(predict(Sequence([wait, OTHER, write]), free_gpu, connections=1)) == [0]
    behind = predict(Sequence([wait, OTHER, write]), GPU, connections=1)  # the write, too
    assert behind.hang is not None


@pytest.mark.parametrize(
    ("event", "switch", "until"),
    [
        (WriteValue("x", stream=0), "value_waits_hold_queues", 10),
        (RecordEvent(0, stream=0, timing=True), "value_waits_hold_queues", 10),
        (HostFunction(50 * US, stream=0), "host_functions_hold_queues", 10),
    ],
)
def test_what_waits_for_work_of_its_stream_holds_its_hardware_queue(
    event: Event, switch: str, until: int
) -> None:
    program = Sequence([KERNEL, event, Launch(1, 32, 16, stream=3, duration=US)])
    assert starts(predict(program, GPU, connections=1)) == [0, until]
    assert starts(predict(program, GPU, connections=4)) == [0, 0]
    free = replace(GPU, mechanisms=replace(GPU.mechanisms, **{switch: False}))
    assert starts(predict(program, free, connections=1)) == [0, 0]


def test_values_take_their_times() -> None:
    slow = replace(GPU, value_write_ns=3_000, value_wait_ns=2_000, value_wake_ns=5_000)
    behind = Launch(1, 32, 16, stream=0, duration=US)
    write, wait = WriteValue("x", stream=0), WaitValue("x", stream=1)
    assert starts(predict(Sequence([KERNEL, write, behind]), slow)) == [0, 13]
    assert starts(predict(Sequence([KERNEL, write, wait, OTHER]), slow)) == [0, 15]
    assert starts(predict(Sequence([write, KERNEL, wait, OTHER]), slow))[1] == 2
    over = WaitValue("x", 0, stream=0)
    assert starts(predict(Sequence([KERNEL, over, over, behind]), slow)) == [0, 14]


def test_records_with_timing_take_their_time_and_hold_up_programmatic_launches() -> None:
    slow = replace(GPU, timed_record_ns=3_000)
    record, wait = RecordEvent(0, stream=0, timing=True), WaitEvent(0, stream=1)
    behind = Launch(1, 32, 16, stream=0, duration=US)
    assert starts(predict(Sequence([KERNEL, record, behind]), slow)) == [0, 13]
    assert starts(predict(Sequence([KERNEL, record, record, behind]), slow)) == [0, 16]
    assert starts(predict(Sequence([KERNEL, record, wait, OTHER]), slow)) == [0, 13]
    early = replace(behind, programmatic=True)
    triggering = replace(KERNEL, trigger=US)
    assert starts(predict(Sequence([triggering, early]), slow)) == [0, 1]
    assert starts(predict(Sequence([triggering, replace(record, timing=False), early]), slow)) == [
        0, 1
    ]  # fmt: skip
    assert starts(predict(Sequence([triggering, record, early]), slow)) == [0, 13]


def test_wait_is_over_where_the_value_is_large_enough() -> None:
    def second(*events: Event) -> int:
        return starts(predict(Sequence([KERNEL, *events, OTHER]), GPU))[1]

    write, wait = WriteValue("x", 3, stream=0), WaitValue("x", 3, stream=1)
    assert second(write, wait) == 10
    assert second(write, WaitValue("x", 2, stream=1)) == 10
    assert second(write, WaitValue("x", 0, stream=1)) == 0  # every value is 0 at first
    assert second(WriteValue("x", 1, stream=2), WaitValue("x", 1, stream=1)) == 0
    assert second(WriteValue("x", 1, stream=2), write, wait) == 10


@pytest.mark.parametrize("events", list(itertools.permutations([0, 1, 2])))
def test_values_order_streams_whatever_the_order_of_calls(events: tuple[int, ...]) -> None:
    parts: list[list[Event]] = [
        [KERNEL, WriteValue("a", stream=0)],
        [WaitValue("a", stream=1), OTHER, WriteValue("b", stream=1)],
        [WaitValue("b", stream=2), Launch(1, 32, 16, stream=2, duration=US)],
    ]
    program = Sequence([event for number in events for event in parts[number]])
    trace = predict(program, GPU)
    by_stream = dict(
        zip([launch.stream for launch in program.launches], starts(trace), strict=True)
    )
    assert by_stream == {0: 0, 1: 10, 2: 11}


@pytest.mark.parametrize(
    "program",
    [
        [WaitValue("x", stream=1), OTHER],
        [OTHER, WaitValue("x", stream=1)],
        [WriteValue("x", 1, stream=0), WaitValue("x", 2, stream=1), OTHER],
        # The host waits for the stream, and so never writes.
        [WaitValue("x", stream=1), OTHER, Synchronize(), WriteValue("x", stream=0)],
    ],
)
def test_program_that_waits_for_a_value_that_nobody_writes_hangs(program: list[Event]) -> None:
    found = predict(Sequence(program), GPU)
    assert found.hang is not None
    assert "'x'" in found.hang.text
    assert [each.blocks for each in found.hang.stranded] == [
        int((placement.smid < 0).sum()) for placement in found if (placement.smid < 0).any()
    ]


def test_prediction_says_what_no_gpu_was_measured_for() -> None:
    node = Launch(1, 32, 16, duration=US)
    graph = Graph([node, HostFunction()], edges=[(0, 1)])
    program = [graph.launch(0), WriteValue("x", stream=0), HostCall("cudaFree"), KERNEL]
    assert predict(Sequence(program), "h200").assumed_rules == ("host calls",)
    found = predict(Sequence(program), "rtx3090")
    assert {"host calls", "host functions", "values in memory"} <= set(found.assumed_rules)
    assert predict(Sequence([KERNEL]), "h200").assumed_rules == ()


@pytest.mark.parametrize(
    "event",
    [
        HostFunction(stream=0),
        WriteValue("x", stream=0),
        WaitValue("x", 0, stream=0),
        Graph([Launch(1, 32, 16, duration=US), WaitEvent(0)]).launch(0),
    ],
)
def test_processes_that_take_turns_are_refused_what_was_not_measured(event: Event) -> None:
    program = Sequence([event, KERNEL])
    with pytest.raises(ValueError, match=r"process 0: .* nobody knows how it goes on"):
        predict_processes([program, Sequence([KERNEL])], "h200")


@pytest.mark.parametrize("event", [HostCall("f", US), WriteValue("x", stream=0)])
def test_no_limits_are_known_with_host_calls_and_values(event: Event) -> None:
    with pytest.raises(ValueError, match="no limits are known"):
        makespan_bounds(Sequence([event, KERNEL]), "h200")


def test_copy_behind_a_wait_that_is_over_takes_its_queue() -> None:
    """Both are at the head of the queue at the same instant, and neither is a launch."""
    wait = WaitValue("x", 0, stream=1)
    program = Sequence([wait, Memset(64, stream=1), wait, Memset(64, stream=1), OTHER])
    assert starts(predict(program, GPU, connections=1)) == [0]
