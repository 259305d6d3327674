"""Programs over time, rule by rule: streams, hardware queues, events, priorities, grids."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import gpu, launch
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Event,
    HostCall,
    Launch,
    RecordEvent,
    Sequence,
    Stream,
    WaitEvent,
)
from tbsched.traces.trace import Trace

MS = 1_000_000
ONE = gpu()  # 16 slots
KB = 1024


def timed(blocks: int = 1, ms: float = 1, **rest: object) -> Launch:
    return launch(blocks, duration=ms * 1e-3, **rest)  # type: ignore[arg-type]


def run(
    *events: Event,
    spec: DeviceSpec = ONE,
    interval_ms: float = 0,
    issue_ms: list[float] | None = None,
) -> Trace:
    times = None if issue_ms is None else [ms * 1e-3 for ms in issue_ms]
    return predict(Sequence(events), spec, launch_interval=interval_ms * 1e-3, issue_times=times)


def starts(trace: Trace) -> list[float]:
    """When the first block of each launch starts, in ms."""
    return [float(p.start_ns.min()) / MS for p in trace]  # type: ignore[union-attr]


def waits(trace: Trace, k: int) -> list[tuple[str, int, float, float]]:
    """What launch k waited for: cause, launch behind it, begin and end in ms."""
    assert trace.waits is not None
    return [
        (str(row["cause"]), int(row["behind"]), row["begin_ns"] / MS, row["end_ns"] / MS)
        for row in trace.waits[trace.waits["launch"] == k]
    ]


# -- blocks and durations -------------------------------------------------------------------------


def test_block_ends_after_its_duration_and_makes_room_for_the_next() -> None:
    trace = run(timed(16, ms=2), timed(1))
    assert starts(trace) == [0, 2]
    assert trace.makespan == pytest.approx(3e-3)
    assert starts(run(timed(15, ms=2), timed(1))) == [0, 0]


def test_blocks_of_a_launch_end_one_by_one() -> None:
    first = launch(16, duration=tuple((k + 1) * 1e-3 for k in range(16)))
    trace = run(first, timed(3))
    assert trace[1].start_ns is not None
    assert (trace[1].start_ns // MS).tolist() == [1, 2, 2]  # at 2 ms its own first block ends too


def test_launch_larger_than_the_gpu_runs_in_waves() -> None:
    trace = run(timed(40))
    assert trace[0].start_ns is not None
    assert np.bincount(trace[0].start_ns // MS).tolist() == [16, 16, 8]


def test_blocks_that_run_for_no_time_leave_at_the_same_instant() -> None:
    trace = run(timed(40, ms=0), timed(16), timed(1))
    assert starts(trace) == [0, 0, 1]
    assert trace[0].end_ns is not None
    assert trace[0].end_ns.max() == 0


def test_durations_differ_on_one_sm_and_each_block_gives_back_its_own() -> None:
    # One block of two warps and one of one warp, in turn: only the first block's end makes room.
    spec = gpu(blocks_per_sm=2)
    trace = run(launch(2, duration=(1e-3, 3e-3)), timed(1), timed(1), spec=spec)
    assert starts(trace) == [0, 1, 2]


def test_time_is_in_whole_nanoseconds() -> None:
    trace = run(launch(duration=1.4e-9), launch(duration=1.6e-9))
    assert [p.end_ns.tolist() for p in trace] == [[1], [2]]  # type: ignore[union-attr]


def test_time_that_overflows_is_refused() -> None:
    three = [launch(stream=0, duration=1e9)] * 3
    assert run(*three).makespan == 3e9
    with pytest.raises(ValueError, match=r"launch 3: duration: .* beyond the range of time"):
        run(*three, launch(stream=0, duration=1e9))
    with pytest.raises(ValueError, match=r"launch_interval: 1000000000.0 for each of 10 launches"):
        run(*[launch(duration=0.0)] * 10, interval_ms=1e12)


# -- the host -------------------------------------------------------------------------------------


def test_host_issues_a_launch_every_interval_and_events_at_once() -> None:
    events = [timed(), timed(), RecordEvent(0, 5), WaitEvent(0, 6), timed(stream=6)]
    assert starts(run(*events, interval_ms=0.25)) == [0, 0.25, 0.5]
    assert starts(run(*events)) == [0, 0, 0]


def test_launch_does_not_wait_before_it_is_issued() -> None:
    trace = run(timed(16, ms=2), timed(1), interval_ms=1.5)
    assert waits(trace, 1) == [("slots", -1, 1.5, 2)]


def test_interval_needs_durations_and_is_a_time() -> None:
    with pytest.raises(ValueError, match=r"launch_interval: 1\.0 needs launches with durations"):
        predict(Sequence([launch()]), ONE, launch_interval=1)
    with pytest.raises(ValueError, match=r"launch_interval: -1 is outside 0\.\.1e9 seconds"):
        predict(Sequence([timed()]), ONE, launch_interval=-1)


def test_host_issues_each_launch_at_its_time() -> None:
    events = [timed(stream=0), timed(ms=3, stream=1), RecordEvent(0, 1), timed(stream=2)]
    assert starts(run(*events, issue_ms=[0.5, 0.5, 2])) == [0.5, 0.5, 2]
    assert starts(run(*events[:3], WaitEvent(0, 2), events[3], issue_ms=[0, 0, 1])) == [0, 0, 3]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0.0], r"issue_times: 2 ascending times are needed, got \[0\.0\]"),
        ([1.0, 0.5], r"issue_times: 2 ascending times are needed, got \[1\.0, 0\.5\]"),
        ([0.0, -1.0], r"issue_times: -1\.0 is outside 0\.\.1e9 seconds"),
        ([0.0, "x"], "issue_times: "),
    ],
)
def test_issue_times_are_one_per_launch_and_ascend(times: list[float], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        predict(Sequence([timed(), timed()]), ONE, issue_times=times)


def test_issue_times_need_durations_and_no_interval() -> None:
    with pytest.raises(ValueError, match=r"issue_times: .* needs launches with durations"):
        predict(Sequence([launch()]), ONE, issue_times=[0.0])
    with pytest.raises(ValueError, match="issue_times: given together with launch_interval"):
        predict(Sequence([timed()]), ONE, launch_interval=1, issue_times=[0.0])


# -- latencies ------------------------------------------------------------------------------------


def test_launch_starts_when_it_has_reached_the_gpu_and_waits_from_then_on() -> None:
    spec = gpu(launch_latency_ns=MS // 4)
    trace = run(timed(16, ms=2), timed(1), spec=spec, issue_ms=[0, 0.5])
    assert starts(trace) == [0.25, 2.25]
    assert waits(trace, 0) == []
    assert waits(trace, 1) == [("slots", -1, 0.75, 2.25)]


def test_room_of_a_block_is_there_for_another_after_the_exit_latency() -> None:
    trace = run(timed(16), timed(1), spec=gpu(exit_latency_ns=MS // 4))
    assert starts(trace) == [0, 1.25]
    assert trace[0].end_ns is not None
    assert trace[0].end_ns.max() == MS


def test_successors_start_after_the_completion_latency_and_room_is_there_before() -> None:
    spec = gpu(exit_latency_ns=MS // 4, completion_latency_ns=MS // 2)
    event = [RecordEvent(0, 0), WaitEvent(0, 2), timed(stream=2)]
    trace = run(timed(16, stream=0), timed(stream=1), *event, timed(stream=0), spec=spec)
    assert starts(trace) == [0, 1.25, 1.75, 1.75]
    legacy = run(timed(stream=0), timed(stream=LEGACY_STREAM), timed(stream=1), spec=spec)
    assert starts(legacy) == [0, 1.75, 3.5]


def test_resident_grid_gives_its_place_back_with_the_room_of_its_last_block() -> None:
    spec = gpu(resident_grids=1, exit_latency_ns=MS // 4, completion_latency_ns=MS // 2)
    assert starts(run(timed(), timed(), spec=spec)) == [0, 1.25]


# -- streams --------------------------------------------------------------------------------------


def test_launches_of_a_stream_run_one_after_the_other() -> None:
    trace = run(timed(stream=1), timed(stream=1), timed(stream=2))
    assert starts(trace) == [0, 1, 0]
    assert waits(trace, 1) == [("stream", 0, 0, 1)]
    assert trace[1].limiter == "stream"
    assert trace[2].limiter is None


def test_next_of_a_stream_waits_for_the_last_block() -> None:
    assert starts(run(launch(2, stream=1, duration=(1e-3, 3e-3)), timed(stream=1))) == [0, 3]


# -- hardware queues ------------------------------------------------------------------------------


def test_streams_of_one_queue_wait_for_each_other_s_streams() -> None:
    two = gpu(hardware_queues=2)
    # Streams 0 and 2 share queue 0. Launch 1 waits for its stream and holds up launch 3.
    events = [timed(stream=0), timed(stream=0), timed(stream=1), timed(stream=2)]
    trace = run(*events, spec=two)
    assert [placement.hardware_queue for placement in trace] == [0, 0, 1, 0]
    assert starts(trace) == [0, 1, 0, 1]
    assert waits(trace, 3) == [("hardware_queue", 1, 0, 1)]
    assert starts(run(*events, spec=gpu(hardware_queues=3))) == [0, 1, 0, 0]


def queues(trace: Trace) -> list[int | None]:
    return [placement.hardware_queue for placement in trace]


def test_launch_takes_the_queue_used_longest_ago_the_lowest_number_first() -> None:
    numbers = [7, 3, 5, 3, 9, 1]
    trace = run(*[timed(stream=s) for s in numbers], spec=gpu(hardware_queues=3))
    assert queues(trace) == [0, 1, 2, 1, 0, 2]  # queue 1 was used again after queue 0


def test_empty_queue_of_the_front_end_with_fewer_or_of_the_other_comes_first() -> None:
    four = gpu(hardware_queues=4)  # queue 0 was used last, 2 and 3 never, and 2 is of its front end
    streams = [timed(stream=s) for s in (0, 1, 0, 2)]
    assert queues(run(*streams, spec=four, issue_ms=[0, 2, 4, 6])) == [0, 1, 0, 3]
    # Launch 1 waits in queue 0. So stream 2 takes none of its front end, of which it is the turn.
    streams = [timed(stream=s) for s in (0, 0, 1, 2)]
    assert queues(run(*streams, spec=four, issue_ms=[0, 0, 0.1, 0.2])) == [0, 0, 1, 3]


def test_stream_keeps_its_queue_as_long_as_it_was_the_last_to_use_it() -> None:
    two = gpu(hardware_queues=2)
    assert queues(run(*[timed(stream=s) for s in (0, 1, 0, 0)], spec=two)) == [0, 1, 0, 0]
    # Stream 2 has used queue 0 since, so stream 0 takes the queue used longest ago.
    assert queues(run(*[timed(stream=s) for s in (0, 1, 2, 0)], spec=two)) == [0, 1, 0, 1]


def test_queue_from_which_everything_is_taken_comes_before_one_used_longer_ago() -> None:
    two = gpu(hardware_queues=2)
    events = [timed(stream=0), timed(stream=0), timed(stream=1), timed(stream=2)]
    # Launch 1 waits in queue 0. When launch 3 is issued launch 2 has been taken, or has not.
    assert queues(run(*events, spec=two, issue_ms=[0, 0, 0, 0.1])) == [0, 0, 1, 1]
    assert queues(run(*events, spec=two, issue_ms=[0, 0, 0.1, 0.1])) == [0, 0, 1, 0]


def test_own_queue_is_kept_though_another_is_empty() -> None:
    trace = run(timed(stream=0), timed(stream=0), timed(stream=0), issue_ms=[0, 0, 0.1])
    assert queues(trace) == [0, 0, 0]


@pytest.mark.parametrize("used_before", [False, True])
def test_ninth_stream_is_held_up_by_the_first_only_if_no_queue_is_empty(used_before: bool) -> None:
    # Eight queues; the second launch of stream 0 waits, then come streams 1 to 8.
    before = [timed(ms=0.2, stream=s) for s in range(9)] if used_before else []
    waiting = [timed(ms=5, stream=0), timed(ms=0.5, stream=0)]
    events = [*before, *waiting, *[timed(ms=0.5, stream=s) for s in range(1, 9)]]
    eight = gpu(hardware_queues=8, blocks_per_sm=32)
    trace = run(*events, spec=eight, issue_ms=[k * 2e-3 for k in range(len(events))])
    second, last_launch = len(before) + 1, len(events) - 1
    held_up = [cause for cause, behind, *_ in waits(trace, last_launch) if behind == second]
    assert held_up == (["hardware_queue"] if used_before else [])
    assert (starts(trace)[-1] >= 5) == used_before


@pytest.mark.parametrize(("issue_ms", "queue"), [(0.009, 0), (0.01, 0), (0.011, 1)])
def test_queue_is_not_empty_until_its_launch_has_reached_the_gpu(
    issue_ms: float, queue: int
) -> None:
    spec = gpu(hardware_queues=2, launch_latency_ns=10_000)
    events = [timed(stream=0), timed(stream=0), timed(stream=1), timed(stream=2)]
    trace = run(*events, spec=spec, issue_ms=[0, 0, 0, issue_ms])
    assert trace[3].hardware_queue == queue


def test_launch_at_the_head_of_its_queue_holds_up_nothing_once_it_has_only_room_to_wait_for() -> (
    None
):
    trace = run(timed(16), timed(16, stream=0), timed(stream=1), spec=gpu(hardware_queues=1))
    assert waits(trace, 2)[0][0] == "queue"  # in the thread block scheduler, not in the queue


def test_record_takes_no_place_in_a_queue_and_holds_up_nothing() -> None:
    one = gpu(hardware_queues=1)
    events = [timed(stream=0), RecordEvent(0, 0), timed(stream=1)]
    assert starts(run(*events, spec=one)) == [0, 0]
    assert starts(run(events[0], timed(stream=0), events[2], spec=one)) == [0, 1, 1]


def test_wait_holds_up_a_queue_only_with_a_launch_after_it() -> None:
    one = gpu(hardware_queues=1)
    behind = [timed(stream=0), RecordEvent(0, 0), WaitEvent(0, 1)]
    assert starts(run(*behind, timed(stream=2), spec=one)) == [0, 0]
    trace = run(*behind, timed(stream=1), timed(stream=2), spec=one)
    assert starts(trace) == [0, 1, 1]
    assert waits(trace, 2) == [("hardware_queue", 1, 0, 1)]


def test_record_after_a_wait_happens_after_what_is_waited_for() -> None:
    events = [timed(stream=0), RecordEvent(0, 0), WaitEvent(0, 1), RecordEvent(1, 1)]
    assert starts(run(*events, WaitEvent(1, 2), timed(stream=2))) == [0, 1]
    assert starts(run(*events, timed(stream=2))) == [0, 0]


@pytest.mark.parametrize("stream", [1, LEGACY_STREAM])
@pytest.mark.parametrize(
    "program",
    [
        [timed(stream=1), timed(stream=2)],
        [Copy(64, "d2h", stream=1, blocking=True), Copy(1 << 20, "d2h", stream=1)],
        [timed(first_use=True), HostCall("wait", waits="stream", stream=1), timed(stream=2)],
    ],
)
def test_wait_for_an_event_that_nobody_records_changes_nothing(
    program: list[Event], stream: Stream
) -> None:
    for place in range(len(program) + 1):
        waiting = [*program[:place], WaitEvent(9, stream), *program[place:]]
        one, other = (predict(Sequence(events), "h200") for events in (program, waiting))
        assert starts(one) == starts(other)
        assert np.array_equal(one.transfer_ns, other.transfer_ns)


# -- events ---------------------------------------------------------------------------------------


def test_stream_waits_for_an_event_of_another() -> None:
    events = [timed(stream=1), RecordEvent(0, 1), WaitEvent(0, 2), timed(stream=2)]
    trace = run(*events)
    assert starts(trace) == [0, 1]
    assert waits(trace, 1) == [("event", 0, 0, 1)]
    without = [event for event in events if not isinstance(event, WaitEvent)]
    assert starts(run(*without)) == [0, 0]


def test_event_is_that_of_the_work_before_its_record() -> None:
    trace = run(
        timed(stream=1), RecordEvent(0, 1), timed(stream=1), WaitEvent(0, 2), timed(stream=2)
    )
    assert starts(trace) == [0, 1, 1]


def test_wait_is_for_the_most_recent_record_before_it() -> None:
    record = [timed(ms=1, stream=1), RecordEvent(0, 1), timed(ms=3, stream=3), RecordEvent(0, 3)]
    assert starts(run(*record, WaitEvent(0, 2), timed(stream=2)))[-1] == 3
    again = [*record[:2], WaitEvent(0, 2), *record[2:], timed(stream=2)]
    assert starts(run(*again))[-1] == 1


def test_wait_for_an_event_that_nobody_recorded_before_is_no_wait() -> None:
    trace = run(WaitEvent(0, 2), timed(stream=1), RecordEvent(0, 1), timed(stream=2))
    assert starts(trace) == [0, 0]


def test_of_several_events_the_last_to_happen_counts() -> None:
    events: list[Event] = []
    for number, ms in enumerate((2, 3, 1)):
        events += [timed(ms=ms, stream=number), RecordEvent(number, number)]
    trace = run(*events, *[WaitEvent(number, 5) for number in range(3)], timed(stream=5))
    assert waits(trace, 3) == [("event", 1, 0, 3)]


# -- the legacy stream ----------------------------------------------------------------------------


def test_legacy_stream_waits_for_all_and_all_later_wait_for_it() -> None:
    legacy = timed(stream=LEGACY_STREAM)
    trace = run(timed(stream=1), timed(ms=2), legacy, timed(stream=1), timed())
    assert starts(trace) == [0, 0, 2, 3, 3]
    assert waits(trace, 2) == [("legacy_stream", 1, 0, 2)]
    assert waits(trace, 4) == [("legacy_stream", 2, 0, 3)]
    assert waits(trace, 3) == [("stream", 0, 0, 1), ("legacy_stream", 2, 1, 3)]
    numbered = run(timed(stream=1), timed(ms=2), timed(stream=9), timed(stream=1), timed())
    assert starts(numbered) == [0, 0, 0, 1, 0]


def test_events_of_the_legacy_stream_synchronise_too() -> None:
    trace = run(timed(stream=1), RecordEvent(0, LEGACY_STREAM), timed(stream=2))
    assert starts(trace) == [0, 1]
    assert waits(trace, 1) == [("legacy_stream", -1, 0, 1)]


# -- grids ----------------------------------------------------------------------------------------


def test_no_more_grids_are_resident_than_the_device_takes() -> None:
    trace = run(timed(), timed(ms=2), timed(), spec=gpu(resident_grids=2))
    assert starts(trace) == [0, 0, 1]
    assert waits(trace, 2) == [("grids", -1, 0, 1)]
    assert starts(run(timed(), timed(ms=2), timed(), spec=gpu(resident_grids=3))) == [0, 0, 0]


def test_place_among_the_resident_grids_goes_to_the_most_urgent() -> None:
    one = gpu(resident_grids=1)
    assert starts(run(timed(), timed(), timed(priority=-1), spec=one)) == [1, 2, 0]
    fifo = gpu(resident_grids=1, launch_order="fifo")
    assert starts(run(timed(), timed(), timed(priority=-1), spec=fifo)) == [0, 1, 2]


# -- priorities and the order of launches ---------------------------------------------------------


def test_more_urgent_launch_takes_the_room_that_blocks_leave() -> None:
    low, high = timed(32), timed(16, priority=-1)
    trace = run(low, high, interval_ms=0.5)
    assert starts(trace) == [0, 1]
    assert trace[0].start_ns is not None
    assert np.unique(trace[0].start_ns // MS).tolist() == [0, 2]
    assert waits(trace, 0) == [("slots", -1, 0, 0.5), ("priority", 1, 0.5, 1), ("slots", -1, 1, 2)]


def test_launch_that_does_not_fit_holds_up_its_priority_under_leftover() -> None:
    events = [timed(10), timed(shared_memory=90 * KB), timed()]
    leftover, passing = run(*events), run(*events, spec=gpu(launch_order="pass_by"))
    assert starts(leftover) == [0, 1, 1]
    assert waits(leftover, 2) == [("queue", 1, 0, 1)]
    assert starts(passing) == [0, 1, 0]


def test_more_urgent_launch_passes_under_leftover_and_not_under_fifo() -> None:
    events = [timed(10), timed(shared_memory=90 * KB), timed(priority=-1)]
    assert starts(run(*events)) == [0, 1, 0]
    fifo = run(*events, spec=gpu(launch_order="fifo"))
    assert starts(fifo) == [0, 1, 1]
    assert waits(fifo, 2) == [("queue", 1, 0, 1)]


def test_unknown_order_of_launches_is_refused() -> None:
    with pytest.raises(ValueError, match="launch_order: 'x' is unknown; there are leftover fifo"):
        run(timed(), spec=gpu(launch_order="x"))


# -- causes of the SM, and what can never run -----------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "first", "second"),
    [
        ("slots", timed(16), timed()),
        ("warps", timed(1, warps=32), timed(1, warps=32)),
        ("registers", timed(1, warps=4, registers=255), timed(2, warps=4, registers=255)),
        ("shared_memory", timed(shared_memory=60 * KB), timed(shared_memory=60 * KB)),
        ("configuration", timed(), timed(shared_memory=10 * KB)),
        ("local_memory", timed(), timed(local_memory=4096)),
    ],
)
def test_wait_for_room_names_the_resource(cause: str, first: Launch, second: Launch) -> None:
    trace = run(first, second)
    assert waits(trace, 1) == [(cause, -1, 0, 1)]


@pytest.mark.parametrize(
    ("never", "field"),
    [
        (Launch(1, 1024, 128, duration=1.0), "launch 1: registers: 128"),
        (Launch(1, 32, 16, 2**20, duration=1.0), "launch 1: shared_memory: 1048576"),
        (Launch(2, 32, 16, cluster=2, duration=1.0), "launch 1: cluster: 2"),
    ],
)
def test_launch_that_can_never_run_is_refused_before_anything_does(
    never: Launch, field: str
) -> None:
    with pytest.raises(ValueError, match=field):
        run(timed(), never)


def test_clusters_start_together() -> None:
    h200 = device("h200")
    trace = run(timed(132, warps=32), Launch(8, 1024, 32, cluster=8, duration=1e-3), spec=h200)
    assert trace[1].start_ns is not None
    assert len(np.unique(trace[1].start_ns)) == 1


def test_large_program_keeps_its_streams_in_order() -> None:
    events = [timed(1 + k % 7, ms=(1 + k % 5) / 10, stream=k % 128) for k in range(20_000)]
    rows = predict(Sequence(events), device("h200")).timeline
    first = np.unique(rows["launch"], return_index=True)[1]
    starts, ends = rows["start_ns"][first], np.maximum.reduceat(rows["end_ns"], first)
    assert (starts[128:] >= ends[:-128]).all()


def test_launch_that_was_refused_waits_for_a_turn_once_the_scheduler_is_with_another() -> None:
    spec = gpu(launch_order="pass_by", launch_switch_ns=MS)
    first = launch(12, duration=(2.5e-3, *[10e-3] * 11))
    trace = run(
        first,
        timed(shared_memory=90 * KB),  # more than the SM is configured for
        timed(),
        timed(),
        spec=spec,
        issue_ms=[0, 2, 2, 2],
    )
    assert starts(trace) == [0, 10, 2, 3]
    assert waits(trace, 3) == [("turn", 2, 2, 3)]
    # It is asked with the others at 2 ms. At 2.5 ms, when a block leaves, nobody else may be.
    assert waits(trace, 1) == [
        ("configuration", -1, 2, 2.5),
        ("turn", 2, 2.5, 3),
        ("configuration", -1, 3, 10),
    ]


def test_front_end_goes_round_the_queues_that_wait() -> None:
    spec = gpu(front_ends=2, queue_watch_ns=500_000, host_watch_ns=500_000)
    first = [timed(ms=ms, stream=k) for k, ms in enumerate((1, 2.5, 4))]
    trace = run(*first, *(timed(stream=k) for k in range(3)), spec=spec)
    # Streams 0 and 2 have queues of one front end. It goes round until stream 0 has gone on.
    assert starts(trace) == [0, 0, 0, 2, 2.5, 4]
    assert waits(trace, 3) == [("stream", 0, 0, 2)]
    no_writes = gpu(front_ends=2, queue_watch_ns=500_000)
    assert starts(run(*trace.sequence, spec=no_writes)) == [0, 0, 0, 1.5, 2.5, 4]


def test_what_was_written_to_the_host_delays_what_waits_for_it() -> None:
    spec = gpu(front_ends=2, queue_watch_ns=250_000, host_write_ns=500_000)
    assert starts(run(timed(stream=0), timed(stream=0), spec=spec)) == [0, 1.5]
    assert starts(run(timed(stream=0), timed(stream=1), spec=spec)) == [0, 0]  # nothing to write


def test_front_end_sees_one_queue_after_the_other() -> None:
    spec = gpu(front_ends=2, queue_watch_ns=500_000, host_watch_ns=500_000)
    waiting = [event for k in (1, 2, 3) for event in (WaitEvent(0, k), timed(stream=k))]
    trace = run(timed(stream=0), RecordEvent(0, 0), *waiting, spec=spec)
    assert starts(trace) == [0, 2, 1.5, 2.5]  # 1 and 3 at one front end, which disturbs the other
