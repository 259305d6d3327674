"""When blocks ran by a prediction and by an observation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb
from helpers import gpu
from tbsched.comparison.times import compare_times
from tbsched.prediction.predict import predict_as_recorded
from tbsched.traces.placement import DeviceInfo

MS = 1_000_000
TWO = tb.Sequence([tb.Launch(2, 32, 16, duration=0.001), tb.Launch(1, 32, 16, duration=0.002)])


def trace(*spans: list[tuple[int, int]], seq: tb.Sequence = TWO) -> tb.Trace:
    """A trace of blocks that ran from and to so many nanoseconds, by launch."""
    placements = []
    for blocks in spans:
        sm = np.zeros(len(blocks), np.int32)
        start, end = np.array(blocks, np.int64).reshape(-1, 2).T
        placements.append(tb.Placement(sm, sm, start_ns=start, end_ns=end))
    return tb.Trace(seq, DeviceInfo("a GPU", 1), tuple(placements))


PREDICTED = trace([(0, MS), (0, MS)], [(0, 2 * MS)])


def test_a_trace_agrees_with_itself() -> None:
    diff = compare_times(PREDICTED, PREDICTED)
    assert (diff.pairs, diff.pairs_agreeing) == (1, 1)
    assert (diff.blocks, diff.starts_agreeing) == (3, 3)
    assert diff.makespan_error == 0
    assert all((x.start_error, x.end_error, x.starts) == (0, 0, 1) for x in diff.launches)
    assert str(diff) == (
        "100.00 % of 1 pairs of launches concurrent alike, 100.00 % of 3 blocks start within 5 % "
        "of their launch's duration, makespan +0.00 % of 2 ms"
    )


def test_times_count_from_the_first_start() -> None:
    later = trace([(7 * MS, 8 * MS)] * 2, [(7 * MS, 9 * MS)])
    assert compare_times(PREDICTED, later) == compare_times(PREDICTED, PREDICTED)


def test_a_launch_that_waited_after_all_is_no_longer_concurrent() -> None:
    waited = trace([(0, MS), (0, MS)], [(MS, 3 * MS)])
    diff = compare_times(PREDICTED, waited)
    assert diff.pairs_agreeing == 0
    assert diff.starts_agreeing == 2
    assert diff.launches[1].start_error == -0.5
    assert diff.launches[1].end_error == -0.5
    assert diff.makespan_error == pytest.approx(-1 / 3)


@pytest.mark.parametrize(("late", "agreeing"), [(50_000, 3), (50_001, 2)])
def test_a_start_is_right_within_five_percent_of_the_duration(late: int, agreeing: int) -> None:
    observed = trace([(0, MS), (late, MS + late)], [(0, 2 * MS)])
    assert compare_times(PREDICTED, observed).starts_agreeing == agreeing


@pytest.mark.parametrize(("overlap", "agreeing"), [(50_000, 1), (50_001, 0)])
def test_blocks_that_leave_a_little_apart_overlap_with_nothing(overlap: int, agreeing: int) -> None:
    after = trace([(0, MS), (0, MS)], [(MS, 3 * MS)])
    raced = trace([(0, MS - overlap), (0, MS)], [(MS - overlap, 3 * MS - overlap)])
    assert compare_times(after, raced).pairs_agreeing == agreeing


def test_tolerance_is_the_callers() -> None:
    observed = trace([(0, MS), (90_000, MS)], [(0, 2 * MS)])
    assert compare_times(PREDICTED, observed, tolerance=0.1).starts_agreeing == 3


def test_launches_of_no_duration_are_measured_in_microseconds() -> None:
    seq = tb.Sequence([tb.Launch(1, 32, 16, duration=0.0)])
    diff = compare_times(trace([(0, 0)], seq=seq), trace([(0, 2000)], seq=seq))
    assert diff.launches[0].end_error == -2
    assert diff.pairs == 0


def test_what_cannot_be_compared_is_refused() -> None:
    held = tb.Sequence([tb.Launch(1, 32, 16)])
    with pytest.raises(TypeError, match="a Trace is needed"):
        compare_times(PREDICTED, TWO)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="different sequences"):
        compare_times(PREDICTED, trace([(0, 1)], seq=held))
    with pytest.raises(ValueError, match="durations are needed"):
        compare_times(trace([(0, 1)], seq=held), trace([(0, 1)], seq=held))
    smid = np.zeros(2, np.int32)
    unknown = tb.Trace(TWO, PREDICTED.device, (tb.Placement(smid), tb.Placement(smid[:1])))
    with pytest.raises(ValueError, match="nobody recorded when"):
        compare_times(PREDICTED, unknown)


def test_recorded_program_is_predicted_from_what_its_blocks_did() -> None:
    one = {"threads": 32, "registers": 16, "duration": 0.001}
    program = tb.Sequence([tb.Launch(2, stream=0, **one), tb.Launch(1, stream=1, **one)])
    spec = gpu(blocks_per_sm=2)
    recorded = trace([(0, 15 * MS // 10)] * 2, [(2 * MS, 35 * MS // 10)], seq=program)
    recorded = replace(recorded, extra={"issued_ns": [0, 2 * MS]})
    found = predict_as_recorded(recorded, spec)
    assert found.sequence == program
    assert (found.timeline["start_ns"] == recorded.timeline["start_ns"]).all()
    assert (found.timeline["end_ns"] == recorded.timeline["end_ns"]).all()
    nothing = tuple(tb.Placement(placement.smid) for placement in recorded)
    with pytest.raises(ValueError, match="nobody recorded when the blocks ran"):
        predict_as_recorded(replace(recorded, placements=nothing), spec)
    with pytest.raises(
        TypeError, match=r"predict_as_recorded\.observation: a Trace is needed, got 'x'"
    ):
        predict_as_recorded("x", spec)  # type: ignore[arg-type]
