"""Host threads rule by rule: when calls are made, and what makes them wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.test_timed import ONE, run, starts, timed, waits
from helpers import gpu
from tbsched.prediction.predict import predict
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Event,
    Graph,
    Memset,
    RecordEvent,
    Sequence,
    Synchronize,
    WaitEvent,
)
from tbsched.traces.trace import Trace

MS = 1e-3


def hosted(*events: Event, gaps_ms: float | list[float] = 0, **latencies: int) -> Trace:
    """Latencies are in us."""
    spec = replace(ONE, **{name: us * 1000 for name, us in latencies.items()})
    host = [ms * MS for ms in gaps_ms] if isinstance(gaps_ms, list) else gaps_ms * MS
    return predict(Sequence(events), spec, host=host)


def called(trace: Trace) -> list[float]:
    """When each launch call is made, in ms."""
    assert trace.issue_times is not None
    return [round(time / MS, 6) for time in trace.issue_times]


# -- when calls are made --------------------------------------------------------------------------


def test_a_gap_is_from_the_return_of_the_call_before() -> None:
    events = [timed(), RecordEvent(0, 0), timed(), timed()]
    assert called(hosted(*events, gaps_ms=[1, 2, 3, 4])) == [1, 6, 10]
    trace = hosted(*events, gaps_ms=1, launch_call_ns=100, event_call_ns=10)
    assert called(trace) == [1, 3.11, 4.21]
    assert called(hosted(timed(), timed(), gaps_ms=0.5)) == [0.5, 1]


def test_the_first_calls_of_a_thread_take_longer() -> None:
    calls = {"launch_call_ns": 100, "copy_call_ns": 20, "first_call_ns": 60}
    # By 60, 30 and 20 us. That is before the launch is issued.
    trace = hosted(*[timed(stream=0, ms=0.01)] * 4, **calls)
    assert called(trace) == [0, 0.16, 0.29, 0.41]
    assert starts(trace) == [0.06, 0.19, 0.31, 0.425]
    # Copies count as launches do, and each thread begins anew.
    trace = hosted(timed(stream=0), Copy(64, "h2d", stream=1), timed(stream=0), **calls)
    assert called(trace) == [0, 0.21]
    assert called(hosted(timed(host=1), timed(host=2), timed(host=1), **calls)) == [0, 0, 0.16]
    # One that waits returns later.
    trace = hosted(timed(), Synchronize(), timed(), first_call_ns=60)
    assert called(trace) == [0, 1.12]


def test_the_first_call_of_a_kind_takes_longer() -> None:
    events = [
        timed(),
        Memset(64),
        timed(),
        Memset(64),
        RecordEvent(0, 0),
        RecordEvent(1, 0),
        timed(),
    ]
    trace = hosted(*events, launch_call_ns=100, first_kind_call_ns=50)
    assert called(trace) == [0, 0.3, 0.55]
    # A copy in each direction is a kind of its own, and each thread begins anew.
    copies = [Copy(64, kind, stream=0) for kind in ("h2d", "d2h", "h2d")]
    trace = hosted(*copies, timed(), timed(host=1), timed(host=1), first_kind_call_ns=50)
    assert called(trace) == [0.1, 0, 0.05]


def test_the_first_launch_of_a_stream_takes_longer() -> None:
    events = [timed(stream=0), timed(stream=1), timed(stream=0), timed(stream=None), timed()]
    trace = hosted(*events, launch_call_ns=100, new_stream_call_ns=50)
    assert called(trace) == [0, 0.15, 0.3, 0.4, 0.55]
    # So does its first copy and its first memset.
    events = [timed(stream=0), *2 * [Copy(64, "h2d", stream=0), Memset(64, stream=0)], timed()]
    assert called(hosted(*events, new_stream_call_ns=50)) == [0, 0.15]


def test_threads_call_at_once_and_each_in_its_order() -> None:
    events = [timed(host=1), timed(host=7), timed(host=1), timed()]
    assert called(hosted(*events, gaps_ms=[1, 0.5, 2, 0.25])) == [1, 0.5, 3, 0.25]


def test_calls_of_threads_have_the_driver_one_after_the_other() -> None:
    calls = {"launch_call_ns": 100, "copy_call_ns": 50, "driver_call_ns": 40}
    events: list[Event] = [timed(host=1), Copy(64, "h2d", stream=3, host=2), timed(host=3)]
    events += [RecordEvent(0, 0, host=4), *(timed(host=host) for host in (2, 3, 4))]
    trace = hosted(*events, **calls)
    # All call at 0. The copy has the driver at 0.04 and returns at 0.09, the launch at 0.08.
    assert called(trace) == [0, 0, 0.09, 0.18, 0]
    # Thread 4 comes fourth: an event takes no turn. The last of all waits for it: 0.12 + 0.04.
    assert starts(trace) == [0, 0.08, 0.16, 0.2, 0.12]
    alone = hosted(timed(stream=0), timed(stream=1), **calls)
    assert called(alone) == [0, 0.1]  # nobody else


def test_one_that_calls_later_is_later_in_its_stream_whatever_its_number() -> None:
    trace = hosted(timed(stream=0, host=1), timed(stream=0), gaps_ms=[0.5, 0])
    assert starts(trace) == [1, 0]
    assert waits(trace, 0) == [("stream", 1, 0.5, 1)]


def test_an_event_is_the_one_that_was_recorded_before_the_call() -> None:
    # Thread 0 waits for the event at 0.5 ms. Thread 1 records it again later.
    later = [timed(stream=1, ms=5, host=1), RecordEvent(0, 1, host=1)]
    events = [timed(stream=0), RecordEvent(0, 0), *later, WaitEvent(0, 2), timed(stream=2)]
    assert starts(hosted(*events, gaps_ms=[0, 0, 0, 1, 0.5, 0]))[-1] == 1
    assert starts(hosted(*events, gaps_ms=[0, 0, 0, 0.2, 0.5, 0]))[-1] == 5


def test_graphs_of_threads_keep_their_numbers() -> None:
    graph = Graph([timed(), timed(2), timed()], edges=[(0, 1), (0, 2)])
    other = Graph([timed(3, ms=2)])
    trace = hosted(graph.launch(0, host=1), other.launch(1), gaps_ms=[1, 0])
    assert starts(trace) == [1, 2, 2, 0]
    assert [len(placement.smid) for placement in trace] == [1, 2, 1, 3]


# -- synchronisation ------------------------------------------------------------------------------


def test_synchronize_holds_its_own_thread_alone() -> None:
    events = [timed(), Synchronize(), timed(), timed(host=1), timed(host=1)]
    assert starts(hosted(*events, gaps_ms=[0, 0, 0, 0.5, 0])) == [0, 1, 0.5, 0.5]


@pytest.mark.parametrize(
    ("awaited", "until"),
    [
        (Synchronize(), 3),
        (Synchronize(stream=0), 1),
        (Synchronize(stream=1), 2),
        (Synchronize(stream=9), 0),  # nobody used it
        (Synchronize(event=0), 1),
        (Synchronize(event=7), 0),  # nobody recorded it
        (Synchronize(stream=LEGACY_STREAM), 2),  # stream 2 is non-blocking
    ],
)
def test_synchronize_waits_for_what_it_names(awaited: Synchronize, until: float) -> None:
    work = [
        timed(stream=0),
        RecordEvent(0, 0),
        timed(stream=1, ms=2),
        timed(stream=2, ms=3, non_blocking=True),
    ]
    assert called(hosted(*work, awaited, timed(stream=3)))[-1] == until


def test_synchronize_does_not_wait_for_what_is_issued_later() -> None:
    for awaited in (Synchronize(), Synchronize(stream=0), Synchronize(event=0)):
        later = [timed(stream=0, ms=3, host=1), RecordEvent(0, 0, host=1)]
        events = [timed(stream=0), RecordEvent(0, 0), awaited, timed(stream=1), *later]
        assert called(hosted(*events, gaps_ms=[0, 0, 0, 0, 0.5, 0]))[1] == 1


def test_synchronize_takes_its_time_with_and_without_work() -> None:
    trace = hosted(Synchronize(), timed(), Synchronize(), timed(), synchronize_ns=100)
    assert called(trace) == [0.1, 1.2]
    trace = hosted(timed(), Synchronize(), timed(), completion_latency_ns=200, exit_latency_ns=50)
    assert called(trace) == [0, 1.25]


def test_without_gaps_synchronize_waits_and_other_calls_take_no_time() -> None:
    events = [timed(), timed(), Synchronize(), timed(), RecordEvent(0, 0), timed()]
    spec = replace(ONE, launch_call_ns=9_000_000, event_call_ns=9_000_000)
    assert starts(run(*events, spec=spec)) == [0, 0, 1, 1]
    # The next launch call is no sooner than when it would have been without the wait.
    assert starts(run(*events, interval_ms=0.25)) == [0, 0.25, 1.25, 1.5]
    assert starts(run(*events, interval_ms=2)) == [0, 2, 4, 6]


def test_given_times_hold_whatever_the_host_waits_for() -> None:
    assert starts(run(timed(), Synchronize(), timed(), issue_ms=[0, 0.5])) == [0, 0.5]
    apart = [timed(host=1), timed(), timed(host=1), timed()]
    assert starts(run(*apart, issue_ms=[1, 0, 3, 2])) == [1, 0, 3, 2]


# -- first use and local memory -------------------------------------------------------------------


def test_first_use_waits_for_all_work_and_all_later_work_for_it() -> None:
    events = [timed(stream=0), timed(stream=1, first_use=True), timed(stream=2)]
    trace = hosted(*events, load_ns=100)
    assert called(trace) == [0, 0, 0]  # no call waits
    assert starts(trace) == [0, 1.1, 1.1]
    assert waits(trace, 2) == [("first_use", 1, 0, 1.1)]
    assert starts(hosted(timed(stream=0), *events[2:])) == [0, 0]


def test_each_first_use_waits_for_the_one_before() -> None:
    trace = hosted(*[timed(stream=k, first_use=True) for k in range(3)])
    assert starts(trace) == [0, 1, 2]


def test_launches_of_one_name_load_one_kernel() -> None:
    same = [timed(stream=k, first_use=True, name="k") for k in range(3)]
    assert starts(hosted(*same)) == [0, 0, 0]
    assert starts(hosted(*same, timed(stream=3, first_use=True, name="l"))) == [0, 0, 0, 1]


def test_launch_calls_of_other_threads_wait_while_a_kernel_is_loaded() -> None:
    events = [
        timed(stream=0, first_use=True),
        timed(stream=1, host=1),
        timed(stream=2, host=2),
        RecordEvent(0, 3, host=3),
        timed(stream=3, host=3),
    ]
    gaps = [0, 0.05, 0.3, 0.3, 1]
    trace = hosted(*events, gaps_ms=gaps, first_use_ns=500, launch_call_ns=100)
    assert called(trace) == [0, 0.05, 0.3, 1.3]
    # It asks at 0.1 ms, has loaded at 0.6 ms, and waits for the one that called before 0.1 ms.
    assert starts(trace) == [1.05, 0.05, 1.05, 1.3]
    assert waits(trace, 2) == [("first_use", 0, 0.6, 1.05)]


def test_first_use_takes_its_place_at_given_times_too() -> None:
    trace = run(timed(stream=0), timed(stream=1, first_use=True), issue_ms=[0, 0.5])
    assert starts(trace) == [0, 1]


def test_larger_local_memory_waits_for_an_idle_gpu_and_other_launches_with_it() -> None:
    events = [
        timed(stream=0),
        timed(stream=1, local_memory=4096),
        timed(stream=2, host=1),
        timed(stream=1, local_memory=4096),
    ]
    latencies = {"local_memory_growth_ns": 100, "local_memory_growth_per_byte_ns": 0}
    trace = hosted(*events, gaps_ms=[0, 0, 0.5, 0], **latencies)
    assert called(trace) == [0, 0, 0.5, 1.1]
    assert starts(trace) == [0, 1.1, 1.1, 2.1]
    assert starts(hosted(events[1], **latencies)) == [0.1]  # nothing to wait for
    # Without gaps the launch waits on the GPU instead.
    assert starts(run(*events[:2], timed(stream=2))) == [0, 1, 1]


def test_a_launch_call_waits_for_a_place_in_its_queue() -> None:
    events = [timed(stream=0) for _ in range(5)]
    spec = replace(ONE, queue_places=2, hardware_queues=2)
    trace = predict(Sequence([*events, timed(stream=1, host=1)]), spec, host=0)
    # One runs and two wait; the fourth has a place when the second runs. Other queues have room.
    assert called(trace)[:5] == [0, 0, 0, 0, 1]
    assert starts(trace) == [0, 1, 2, 3, 4, 0]
    assert called(predict(Sequence([*events, timed(stream=1)]), spec, host=0))[-1] == 2
    one = replace(spec, hardware_queues=1)
    found = predict(Sequence([*events, timed(stream=1, host=1)]), one, host=[0, 0, 0, 0, 0, 0.5e-3])
    assert starts(found)[-1] > 1


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [[0.0], [0.0] * 3, [-1.0, 0.0], [0.0, "1"], "ab", -1.0, True])
def test_a_gap_for_each_event_is_needed(host: object) -> None:
    with pytest.raises((TypeError, ValueError), match="host"):
        predict(Sequence([timed(), timed()]), ONE, host=host)  # type: ignore[arg-type]


@pytest.mark.parametrize("other", [{"issue_times": [0.0]}, {"launch_interval": 1e-3}])
def test_gaps_are_not_given_together_with_times(other: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="host: given together with"):
        predict(Sequence([timed()]), ONE, host=0, **other)  # type: ignore[arg-type]


def test_gaps_need_durations_and_end_within_the_range_of_time() -> None:
    with pytest.raises(ValueError, match="host: 0 needs launches with durations"):
        predict(Sequence([replace(timed(), duration=None)]), ONE, host=0)
    late = [RecordEvent(0, 0)] * 5
    with pytest.raises(ValueError, match=r"host: a call at .* ns is beyond the range of time"):
        predict(Sequence([*late, timed()]), ONE, host=1e9)


def test_times_ascend_in_each_thread() -> None:
    with pytest.raises(ValueError, match="issue_times: 3 ascending times"):
        run(timed(host=1), timed(), timed(host=1), issue_ms=[1, 0, 0.5])


def test_what_sms_hold_is_that_of_the_calls() -> None:
    trace = hosted(timed(), Synchronize(), timed(3))
    assert trace.residents(0.5e-3).rows["launch"].tolist() == [0]
    assert set(trace.residents(1.5e-3).rows["launch"].tolist()) == {1}


def test_a_device_without_local_memory_configuration_never_waits_for_it() -> None:
    spec = gpu(mechanisms=replace(ONE.mechanisms, local_memory_configuration=False))
    trace = predict(Sequence([timed(), timed(local_memory=4096)]), spec, host=0)
    assert called(trace) == [0, 0]
