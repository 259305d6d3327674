"""Several processes on one GPU, rule by rule: slices, switches, who is next, what is not seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb
from helpers import gpu, launch
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Event

# Slices of 2 ms. A switch takes 0.1 ms; to stop blocks, or to let them go on, 0.01 ms.
SHARED = gpu(time_slice_ns=2_000_000, process_switch_ns=100_000, preemption_ns=10_000)
FULL = 16  # blocks that fill the only SM


def timed(ms: float, blocks: int = FULL, **rest: object) -> tb.Launch:
    return launch(blocks, duration=ms * 1e-3, **rest)  # type: ignore[arg-type]


def run(
    *programs: list[tb.Launch], issue_ms: list[list[float]] | None = None, spec: object = SHARED
) -> tb.Processes:
    times = [[0.0] * len(p) for p in programs] if issue_ms is None else issue_ms
    return tb.predict_processes(
        [tb.Sequence(p) for p in programs],
        spec,  # type: ignore[arg-type]
        issue_times=[[ms * 1e-3 for ms in row] for row in times],
    )


def turns(found: tb.Processes) -> list[tuple[int, float, float]]:
    return [
        (int(row["process"]), row["begin_ns"] / 1e6, row["end_ns"] / 1e6) for row in found.turns
    ]


def spans(found: tb.Processes, process: int) -> list[tuple[float, float]]:
    """Returns the first start and the last end of each launch, in ms."""
    return [
        (float(p.start_ns.min()) / 1e6, float(p.end_ns.max()) / 1e6)  # type: ignore[union-attr]
        for p in found.traces[process]
    ]


def test_a_process_alone_is_predicted_as_without_others() -> None:
    durations = tuple(1e-4 * (k % 7 + 1) for k in range(300))
    program = tb.Sequence(
        [
            tb.Launch(300, 256, 32, stream=0, duration=durations),
            tb.RecordEvent(0, stream=0),
            tb.Launch(132, 1024, 32, stream=1, duration=3e-3),
            tb.WaitEvent(0, stream=2),
            tb.Launch(40, 128, 32, 30_000, stream=2, duration=1e-3),
            tb.Launch(1, 32, 32, duration=1e-5),
        ]
    )
    times = [0.0, 1e-5, 4e-3, 9e-3]
    alone = tb.predict(program, "h200", issue_times=times)
    (found,) = tb.predict_processes([program], "h200", issue_times=[times]).traces
    assert np.array_equal(found.timeline, alone.timeline)
    assert alone.waits is not None
    assert np.array_equal(found.waits, alone.waits)


def test_two_processes_take_turns_and_blocks_stand_still_meanwhile() -> None:
    found = run([timed(3)], [timed(1)])
    assert turns(found) == [(0, 0, 2), (1, 2.11, 3.11), (0, 3.21, 4.22)]
    # 2 ms of it ran in the first turn; to let its blocks go on takes 0.01 ms.
    assert spans(found, 0) == [(0, 4.22)]
    assert spans(found, 1) == [(2.11, 3.11)]
    assert found.makespan == pytest.approx(4.22e-3)


def test_to_stop_blocks_takes_longer_the_more_they_hold() -> None:
    # 16 blocks of 512 registers, of 4 bytes each, and of 1 KB of shared memory: 48 KB.
    spec = replace(SHARED, preemption_bandwidth=1000)
    assert turns(run([timed(3)], [timed(1)], spec=spec))[1][1] == pytest.approx(2.11 + 0.049152)
    spec = replace(SHARED, first_preemption_ns=50_000)
    found = turns(run([timed(5)], [timed(5)], spec=spec))
    assert [round(begin, 3) for _, begin, _ in found[:4]] == [0, 2.16, 4.32, 6.43]


def test_who_has_nothing_to_do_gives_the_turn_up() -> None:
    found = run([timed(1), timed(1)], [timed(5)], issue_ms=[[0, 1.5], [0]])
    # The second launch of process 0 comes while process 1 has its slice.
    assert turns(found)[:3] == [(0, 0, 1), (1, 1.1, 3.1), (0, 3.21, 4.21)]
    # Launches that wait for one another are something to do.
    found = run([timed(0.5, stream=0)] * 4, [timed(1)])
    assert [process for process, *_ in turns(found)] == [0, 1]


def test_turns_go_round() -> None:
    found = run([timed(3)], [timed(3)], [timed(3)])
    assert [process for process, *_ in turns(found)] == [0, 1, 2, 0, 1, 2]
    found = run([timed(3)], [timed(3)], [timed(3)], issue_ms=[[0.02], [0.01], [0]])
    assert [process for process, *_ in turns(found)] == [2, 1, 2, 0, 1, 0]


def test_the_next_process_is_chosen_when_a_turn_begins() -> None:
    # Process 1 comes during the turn of process 0, while process 2 waits.
    found = run([timed(5)], [timed(1)], [timed(5)], issue_ms=[[0], [1], [0]])
    assert [process for process, *_ in turns(found)][:5] == [0, 2, 0, 1, 2]
    # So it is if the turn is given up.
    found = run([timed(1.5)], [timed(1)], [timed(5)], issue_ms=[[0], [1], [0]])
    assert [process for process, *_ in turns(found)][:3] == [0, 2, 1]


def test_of_those_that_come_during_a_slice_the_first_is_next() -> None:
    # Process 2 comes before process 1.
    found = run([timed(5)], [timed(5)], [timed(5)], issue_ms=[[0], [1], [0.5]])
    assert [process for process, *_ in turns(found)][:4] == [0, 2, 0, 1]


def test_if_launches_wait_then_it_is_the_one_that_follows_in_the_round() -> None:
    two = [timed(3, stream=0), timed(2, stream=0)]
    found = run(two, [timed(5)], [timed(5)], issue_ms=[[0, 0], [1], [0.5]])
    assert [process for process, *_ in turns(found)][:4] == [0, 1, 2, 0]


def test_who_had_the_gpu_before_need_not_switch() -> None:
    programs = [tb.Sequence([timed(1)])] * 2
    times = [[0.0], [5e-3]]
    for last, begins in ((None, [0, 5.1]), (0, [0, 5.1]), (1, [0.1, 5.1])):
        found = tb.predict_processes(programs, SHARED, issue_times=times, last=last)
        assert [begin for _, begin, _ in turns(found)] == begins
    with pytest.raises(ValueError, match=r"predict_processes\.last: 2 is outside 0\.\.1"):
        tb.predict_processes(programs, SHARED, last=2)


def test_who_comes_after_the_slice_goes_first_at_once() -> None:
    found = run([timed(9)], [timed(0.5)], issue_ms=[[0], [1.5]])
    assert turns(found)[0] == (0, 0, 2)
    found = run([timed(9)], [timed(0.5)], issue_ms=[[0], [5]])
    assert turns(found)[0] == (0, 0, 5)
    assert spans(found, 0) == [(0, 9.72)]


def test_slices_go_on_while_launches_wait() -> None:
    found = run([timed(9, stream=0), timed(1, stream=0)], [timed(0.5)], issue_ms=[[0, 0], [5]])
    assert turns(found)[0] == (0, 0, 6)


def test_a_launch_that_comes_while_none_waits_begins_a_slice() -> None:
    small = timed(1, blocks=1)
    found = run([timed(9, blocks=1), small], [timed(0.5)], issue_ms=[[0, 4.5], [5]])
    assert turns(found)[0] == (0, 0, 6.5)


def test_what_comes_to_an_empty_hardware_queue_waits_for_the_next_turn() -> None:
    long, small = timed(3, blocks=1, stream=0), timed(0.1, blocks=1, stream=1)
    found = run([long, small], [timed(3)], issue_ms=[[0, 1], [0.5]])
    assert spans(found, 0)[1] == (4.23, 4.33)
    # Nobody else has work, or something waits in the queue already.
    assert spans(run([long, small], [timed(3)], issue_ms=[[0, 1], [1.5]]), 0)[1] == (1, 1.1)
    two = timed(1.5, blocks=1, stream=1)
    found = run([long, two, two, small], [timed(3)], issue_ms=[[0, 0, 0, 1], [0.5]])
    assert spans(found, 0)[2] == (1.5, 5.23)
    assert spans(found, 0)[3][0] == 5.23


def test_empty_hardware_queues_are_looked_at_while_something_waits_in_another() -> None:
    long, small = timed(3, blocks=1, stream=0), timed(0.1, blocks=1, stream=1)
    found = run([long, long, small], [timed(3)], issue_ms=[[0, 0, 1], [0.5]])
    assert spans(found, 0)[2] == (1, 1.1)


def test_nobody_is_chosen_while_something_waits() -> None:
    for more, order in ([], [0, 1, 0, 1]), ([timed(1)], [0, 1, 2, 0]):
        two = [timed(5), *(replace(each, stream=0) for each in more)]
        two[0] = replace(two[0], stream=0)
        found = run([timed(5)], two, [timed(5)], issue_ms=[[0], [0.5] * len(two), [3]])
        assert [process for process, *_ in turns(found)][:4] == order


def test_copies_of_processes_in_one_direction_take_turns() -> None:
    spec = replace(SHARED, engine_slice_ns=1_000_000)
    program = tb.Sequence([tb.Copy(1, "h2d", stream=0, duration=2.5e-3), timed(1)])
    copies = tb.Sequence([tb.Copy(1, "d2h", stream=0, duration=2.5e-3), timed(1)])

    def ends(other: tb.Sequence, spec: DeviceSpec) -> list[float]:
        found = tb.predict_processes([program, other], spec)
        return [round(float(trace.transfer_ns[0][1]) / 1e6, 1) for trace in found.traces]

    assert ends(program, spec) == [4.5, 5]
    assert ends(copies, spec) == [2.5, 2.5]
    assert ends(program, SHARED) == [2.5, 2.5]


def test_an_event_needs_a_turn_but_not_behind_a_copy() -> None:
    copy, event = tb.Copy(8192, "d2h", stream=0, duration=1e-4), tb.RecordEvent(0, stream=0)
    for first, end in ([], 2.2), ([copy], 0.7):
        program = tb.Sequence([*first, event, copy, timed(0.1)])
        gaps = [[0.0], [0.5e-3, *[0.0] * (len(program) - 1)]]
        found = tb.predict_processes([tb.Sequence([timed(5)]), program], SHARED, host=gaps)
        assert round(float(found.traces[1].transfer_ns[-1][1]) / 1e6, 1) == end


def test_the_host_goes_on_while_its_process_stands_still() -> None:
    found = run([timed(3), timed(1)], [timed(9)], issue_ms=[[0, 3], [0]])
    # It was issued during the other's turn, and starts when there is room.
    assert spans(found, 0) == [(0, 5.23), (5.23, 8.46)]


def test_more_turns_than_anybody_can_use_are_refused() -> None:
    with pytest.raises(ValueError, match=r"durations: .* more than 1000000 turns"):
        run([timed(3.5e6)], [timed(3.5e6)])


def test_no_programs_no_slices_and_rows_that_do_not_fit() -> None:
    program = tb.Sequence([timed(1)])
    with pytest.raises(ValueError, match="programs: there are none"):
        tb.predict_processes([], SHARED)
    with pytest.raises(ValueError, match="time_slice_ns: rtx3090 does not say"):
        tb.predict_processes([program], "rtx3090")
    with pytest.raises(ValueError, match="a row for each of 2 processes is needed, got 1"):
        tb.predict_processes([program] * 2, SHARED, issue_times=[[0.0]])
    with pytest.raises(ValueError, match="process 1: its launches need durations"):
        tb.predict_processes([program, tb.Sequence([launch()])], SHARED)
    with pytest.raises(ValueError, match=r"process 1: .*1 ascending times are needed"):
        tb.predict_processes([program] * 2, SHARED, issue_times=[[0.0], [0.0, 1.0]])
    tiny = replace(SHARED, time_slice_ns=10_000)
    with pytest.raises(ValueError, match="time_slice_ns: 10000 ns are over before"):
        run([timed(1)], [timed(1)], spec=tiny)
    with pytest.raises(TypeError, match=r"programs\[0\]: a Sequence is needed"):
        tb.predict_processes([[timed(1)]], SHARED)  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"predict_processes\.programs: a list is needed"):
        tb.predict_processes(3, SHARED)  # type: ignore[arg-type]


# -- under MPS ------------------------------------------------------------------------------------


def under_mps(
    *programs: list[Event], issue_ms: list[list[float]], spec: str | DeviceSpec = "h200"
) -> tb.Processes:
    times = [[ms * 1e-3 for ms in row] for row in issue_ms]
    return tb.predict_processes(
        [tb.Sequence(p) for p in programs], spec, issue_times=times, mps=True
    )


def test_clients_of_mps_are_placed_as_one_process() -> None:
    a, b = (tb.Launch(blocks, 256, 32, stream=0, duration=5e-3) for blocks in (40, 60))
    found = under_mps([a, a], [b], issue_ms=[[0, 2], [1]])
    # The numbers of streams are their own: only launches of one process wait for each other.
    one = tb.predict(tb.Sequence([a, replace(b, stream=1), a]), "h200", issue_times=[0, 1e-3, 2e-3])
    mine, other = found.traces
    for placement, expected in zip([*mine, *other], [one[0], one[2], one[1]], strict=True):
        assert np.array_equal(placement.smid, expected.smid)
        assert np.array_equal(placement.start_ns, expected.start_ns)  # type: ignore[arg-type]
    assert not len(found.turns)
    assert mine.waits is not None
    assert [(int(row["launch"]), int(row["behind"])) for row in mine.waits] == [(1, 0)]


def test_a_client_numbers_tpcs_as_it_comes_to_use_them() -> None:
    small = tb.Launch(12, 64, 32, stream=0, duration=1e-3)
    (seen,) = under_mps([small, small], issue_ms=[[0, 3]]).seen
    for placement in seen:  # in the second launch anew
        assert sorted(placement.smid.tolist()) == [0, 2, 4, 6, *range(8, 16)]
    later = tb.Launch(132, 64, 32, stream=1, duration=1e-3)
    (seen,) = under_mps([small, later], issue_ms=[[0, 0.5]]).seen
    assert sorted(seen[1].smid.tolist()) == list(range(132))
    assert sorted(seen[0].smid.tolist()) == [0, 2, 4, 6, *range(8, 16)]


def test_events_and_the_legacy_stream_under_mps() -> None:
    first = tb.Launch(1, 32, 32, stream=0, duration=3e-3)
    waits: list[Event] = [
        tb.Launch(1, 32, 32, stream=1, duration=1e-3),
        tb.RecordEvent(0, stream=1),
        tb.WaitEvent(0, stream=2),
        tb.Launch(1, 32, 32, stream=2, duration=1e-3),
    ]
    # Event 0 of one process is not that of the other.
    found = under_mps([first, tb.RecordEvent(0, stream=0)], waits, issue_ms=[[0], [0, 0]])
    start = found.traces[1][1].start_ns
    assert start is not None
    assert 1_000_000 < start[0] < 1_100_000
    legacy = tb.Launch(1, 32, 32, stream="legacy", duration=1e-3)
    with pytest.raises(ValueError, match="process 1: stream: the legacy one is not known"):
        under_mps([first], [legacy], issue_ms=[[0], [0]])


def test_a_client_of_mps_may_launch_nothing_and_the_last_tpc_may_be_small() -> None:
    small = tb.Launch(3, 1024, 32, stream=0, duration=1e-3)
    found = under_mps([tb.RecordEvent(0, stream=0)], [small], issue_ms=[[], [0]], spec=gpu(sms=3))
    assert [len(trace) for trace in found.traces] == [0, 1]
    assert sorted(found.seen[1][0].smid.tolist()) == [0, 1, 2]


def test_each_client_of_mps_loads_its_kernels() -> None:
    first = tb.Launch(1, 32, 32, stream=0, duration=1e-3, name="a", first_use=True)
    found = under_mps([first], [first], issue_ms=[[0], [2]])
    alone = under_mps([first], issue_ms=[[2]])
    assert found.traces[1][0].start_ns == alone.traces[0][0].start_ns


def starts(trace: tb.Trace) -> list[int]:
    return [int(placement.start_ns.min()) for placement in trace]  # type: ignore[union-attr]


def test_one_client_of_mps_is_predicted_as_without_others() -> None:
    def kernel(blocks: int = 2, **rest: object) -> tb.Launch:
        return tb.Launch(blocks, 64, 40, duration=2e-5, **rest)  # type: ignore[arg-type]

    nodes = tb.Sequence([tb.Graph([kernel(), kernel(16)]).launch(stream=0)])
    loads = tb.Sequence([kernel(stream=0, first_use=True), kernel(stream=1)])
    threads = tb.Sequence([kernel(stream=0), kernel(stream=0), kernel(stream=1, host=1)])
    event = tb.Sequence(
        [kernel(stream=0), tb.RecordEvent(0, 0), tb.WaitEvent(0, 1), kernel(stream=1)]
    )
    given: list[tuple[tb.Sequence, dict[str, object]]] = [
        (nodes, {"issue_times": [0, 1e-4]}),
        (loads, {"launch_interval": 1e-6}),
        (threads, {"launch_interval": 1e-4}),
        (threads, {"issue_times": [0, 1e-4, 5e-5]}),
        (event, {"issue_times": [0, 1e-4, 2e-4, 2e-4]}),
    ]
    for program, when in given:
        alone = tb.predict(program, "h200", **when)  # type: ignore[arg-type]
        each = {key: [value] if key == "issue_times" else value for key, value in when.items()}
        (found,) = tb.predict_processes([program], "h200", mps=True, **each).traces  # type: ignore[arg-type]
        assert np.array_equal(found.timeline, alone.timeline)
        assert np.array_equal(found.waits, alone.waits)  # type: ignore[arg-type]


def test_some_clients_of_mps_have_times_of_all_calls() -> None:
    small = tb.Launch(2, 64, 40, stream=0, duration=2e-5)
    late = [small, tb.RecordEvent(0, 0), tb.WaitEvent(0, 1), replace(small, stream=1)]
    found = under_mps([small], late, [small], issue_ms=[[1], [0, 1, 2, 2], [3]])
    assert [starts(trace) for trace in found.traces] == [
        [1_007_000],
        [7_000, 2_007_000],
        [3_007_000],
    ]


def test_clients_of_mps_have_no_more_host_threads_than_a_sequence() -> None:
    small = [tb.Launch(1, 32, 32, duration=1e-3, host=host) for host in range(1024)]
    with pytest.raises(ValueError, match="all processes together have at most 1024 host threads"):
        under_mps(small, [small[0]], issue_ms=[[0] * 1024, [0]])


# -- what is issued while a process waits for the GPU --------------------------------------------


def test_a_launch_reaches_the_gpu_after_its_call_though_its_process_waits() -> None:
    long, small = (tb.Launch(8, 128, 32, duration=d, stream=k) for k, d in enumerate((1e-2, 1e-5)))
    program, other = tb.Sequence([long, small]), tb.Sequence([replace(small, stream=0)])
    for call_ns in (1, 3_500, 6_900, 6_999, 7_000, 7_100):
        times = [[0, call_ns * 1e-9], [1.0]]
        trace = tb.predict_processes([program, other], "h200", issue_times=times).traces[0]
        alone = tb.predict(program, "h200", issue_times=times[0])
        assert starts(trace) == starts(alone)
        assert np.array_equal(trace.waits, alone.waits)  # type: ignore[arg-type]


def test_nodes_reach_the_gpu_after_their_call_though_their_process_waits() -> None:
    node = tb.Launch(8, 128, 32, duration=1e-5)
    graph = tb.Graph([node] * 4, [(0, 1), (0, 2), (0, 3)]).launch(stream=1)
    program = tb.Sequence([replace(node, duration=1e-2, stream=0), graph])
    other = tb.Sequence([replace(node, stream=0)])
    spec = replace(tb.device("h200"), graph_latency_ns=30_000)
    for call_ns in (1_000, 6_900):
        times = [[0, *[call_ns * 1e-9] * 4], [1.0]]
        trace = tb.predict_processes([program, other], spec, issue_times=times).traces[0]
        assert min(starts(trace)[1:]) >= call_ns + 30_000


def test_a_program_with_graphs_ends_though_its_process_waits_while_they_are_issued() -> None:
    def kernel(**rest: object) -> tb.Launch:
        return tb.Launch(1, 32, 32, duration=1e-3, **rest)  # type: ignore[arg-type]

    graphs = [tb.Graph([kernel()] * nodes).launch(stream=1) for nodes in (1, 2)]
    program = tb.Sequence([*graphs, kernel(), kernel(), kernel(stream=2), kernel(stream=2)])
    found = tb.predict_processes(
        [program, tb.Sequence([kernel()])], "h200", launch_interval=1e-6
    ).traces[0]
    alone = tb.predict(program, "h200", launch_interval=1e-6)
    # The second graph waits for the first one, and the last launch for the next turn.
    first = [0, 3, 4, 5]
    assert [starts(found)[k] for k in first] == [starts(alone)[k] for k in first]
    assert starts(found)[6] > starts(alone)[6]
