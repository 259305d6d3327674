"""Processes with slices of other lengths, and with several slots in a round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples, gpu, launch
from prediction.test_processes import SHARED, spans, timed, turns

MS = 1e-3
FREE = gpu()  # a GPU of which nobody knows slices, and whose switches take no time


def found(*durations_ms: float, spec: object = FREE, **given: object) -> tb.Processes:
    """Processes of one kernel each that fills the GPU."""
    programs = [tb.Sequence([timed(ms)]) for ms in durations_ms]
    return tb.predict_processes(programs, spec, **given)  # type: ignore[arg-type]


def test_what_the_device_says_can_be_said_again() -> None:
    usual = found(5, 3, 4, spec=SHARED)
    said = found(5, 3, 4, spec=SHARED, time_slice=2 * MS, runlist=[0, 1, 2])
    assert turns(usual) == turns(said)
    for a, b in zip(usual.traces, said.traces, strict=True):
        assert np.array_equal(a.timeline, b.timeline)


@pytest.mark.parametrize("name", ["xavier", "rtx3090", "v100", "tx2", "pegasus"])
def test_gpus_without_known_slices_take_those_that_are_given(name: str) -> None:
    sms = tb.device(name).sms
    program = tb.Sequence([tb.Launch(sms, 1024, 32, duration=3 * MS)])
    taken = tb.predict_processes([program, program], name, time_slice=1 * MS)
    assert turns(taken) == [(k % 2, k, k + 1) for k in range(6)]
    with pytest.raises(ValueError, match=rf"time_slice_ns: {name} does not .* time_slice can"):
        tb.predict_processes([program, program], name)


def test_each_process_can_have_a_slice_of_its_own() -> None:
    taken = found(4, 4, time_slice=[1 * MS, 3 * MS])
    assert turns(taken) == [(0, 0, 1), (1, 1, 4), (0, 4, 5), (1, 5, 6), (0, 6, 8)]


def test_a_process_with_two_slots_has_twice_the_time() -> None:
    taken = found(8, 4, 4, time_slice=1 * MS, runlist=[0, 1, 0, 2])
    assert turns(taken) == [((0, 1, 0, 2)[k % 4], k, k + 1) for k in range(16)]


def test_slots_that_follow_each_other_cost_nothing_between_them() -> None:
    taken = found(6, 3, spec=SHARED, runlist=[0, 0, 1])
    assert turns(taken) == [
        (0, 0, 2), (0, 2, 4), (1, 4.11, 6.11), (0, 6.22, 8.22), (0, 8.22, 8.23), (1, 8.33, 9.34)
    ]  # fmt: skip
    # 4 ms, and 2 ms more after 0.01 ms in which its blocks were let go on.
    assert spans(taken, 0) == [(0, 8.23)]


def test_a_slot_is_skipped_while_its_process_has_no_work() -> None:
    late = tb.Sequence([timed(2)])
    taken = tb.predict_processes(
        [tb.Sequence([timed(3)]), tb.Sequence([timed(2)]), late], FREE,
        issue_times=[[0.0], [0.0], [3.5 * MS]], time_slice=1 * MS, runlist=[2, 0, 2, 1],
    )  # fmt: skip
    # Process 2 comes at 3.5 ms. By then process 0 has been chosen, as nothing waits in queues.
    assert turns(taken)[:4] == [(0, 0, 1), (1, 1, 2), (0, 2, 3), (1, 3, 4)]
    assert turns(taken)[4:] == [(0, 4, 5), (2, 5, 7)]


def by_slots(durations: list[int], slots: list[int], slices: list[int]) -> list[int]:
    """When each ends, if slots are taken in turn and cost nothing."""
    left = [*durations]
    ends = [0] * len(durations)
    now = 0
    while any(left):
        for process in slots:
            took = min(left[process], slices[process])
            now += took
            left[process] -= took
            if took and not left[process]:
                ends[process] = now
    return ends


@settings(
    max_examples=examples(200), deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(data=st.data(), processes=st.integers(2, 4))
def test_ends_are_those_of_a_round_of_slots(data: st.DataObject, processes: int) -> None:
    numbers = st.lists(st.integers(1, 9), min_size=processes, max_size=processes)
    durations, slices = data.draw(numbers), data.draw(numbers)
    more = data.draw(st.lists(st.integers(0, processes - 1), max_size=4))
    slots = data.draw(st.permutations([*range(processes), *more]))
    taken = found(*durations, time_slice=[MS * each for each in slices], runlist=slots)
    ends = [round(spans(taken, k)[0][1] * 1e6) for k in range(processes)]
    assert ends == [10**6 * each for each in by_slots(durations, [*slots], slices)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"time_slice": 0.0}, "time_slice: 0.0 s is outside"),
        ({"time_slice": 2.0}, "time_slice: 2.0 s is outside"),
        ({"time_slice": [MS]}, "time_slice: .*1"),
        ({"time_slice": MS, "runlist": [0, 0]}, "runlist: process 1 has no slot"),
        ({"time_slice": MS, "runlist": [0, 1, 2]}, "runlist: 2 is outside 0..1"),
        ({"time_slice": MS, "runlist": [0, 1] * 501}, "runlist: 1002 slots"),
        ({"time_slice": MS, "mps": True}, "mps: there are no turns"),
        ({"runlist": [0, 1], "mps": True}, "mps: there are no turns"),
    ],
)
def test_bad_slices_and_slots_are_named(given: dict[str, object], words: str) -> None:
    program = tb.Sequence([launch(duration=MS)])
    with pytest.raises(ValueError, match=words):
        tb.predict_processes([program] * 2, FREE, **given)  # type: ignore[arg-type]
