"""Blocks find room while others leave: what may come of it, and what may not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb
from helpers import recorded
from tbsched.traces.placement import Placement

FULL = [tb.Launch(132, 1024, 64), tb.Launch(100, 1024, 64)]
ONE_LEFT = tb.Sequence([*FULL[:1], tb.Launch(131, 1024, 64), tb.Release(0), tb.Launch(1, 1024, 64)])


def is_possible(trace: tb.Trace, spec: str = "h200") -> bool:
    return tb.compare(tb.predict_as_recorded(trace, spec), trace).occupancy


def test_nothing_waits_so_there_is_one_outcome() -> None:
    sequence = tb.Sequence([tb.Launch(132, 1024, 64), tb.Release(0), tb.Launch(264, 512, 32)])
    (found,) = tb.outcomes(sequence, "h200", races=1000)
    assert found.share == 1
    assert tb.compare(found.trace, tb.predict(sequence, "h200")).exact


def test_race_on_which_nothing_later_depends_has_one_outcome() -> None:
    (found,) = tb.outcomes(tb.Sequence([*FULL, tb.Release(0)]), "h200")
    assert found.share == 1
    assert np.unique(found.trace[1].final_smid).size == 100


def test_block_goes_where_the_race_left_room_which_differs() -> None:
    found = tb.outcomes(ONE_LEFT, "h200", races=300)
    left = [int(outcome.trace[2].smid[0]) for outcome in found]
    assert len(left) == len(set(left)) > 20
    for outcome, sm in zip(found, left, strict=True):
        assert sorted([*outcome.trace[1].final_smid.tolist(), sm]) == list(range(132))
    shares = [outcome.share for outcome in found]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)


def test_orders_of_leaving_are_the_same_each_time() -> None:
    first, second = (tb.outcomes(ONE_LEFT, "h200", races=20) for _ in range(2))
    assert [outcome.share for outcome in first] == [outcome.share for outcome in second]
    assert all(tb.compare(a.trace, b.trace).exact for a, b in zip(first, second, strict=True))


def test_first_sms_that_are_free_take_several_blocks_each() -> None:
    sequence = tb.Sequence([tb.Launch(264, 1024, 32), tb.Launch(132, 256, 32), tb.Release(0)])
    (found,) = tb.outcomes(sequence, "h200")
    assert np.bincount(found.trace[1].final_smid).max() > 3
    assert np.bincount(tb.predict(sequence, "h200")[1].final_smid).max() == 1


def test_first_block_of_a_launch_leaves_first() -> None:
    sequence = tb.Sequence([tb.Launch(132, 1024, 64), tb.Launch(1, 1024, 64), tb.Release(0)])
    (found,) = tb.outcomes(sequence, "h200", races=8)
    assert found.trace[1].final_smid[0] == found.trace[0].smid[0]


def test_next_launch_of_a_stream_comes_when_all_blocks_have_left() -> None:
    events = [tb.Launch(132, 1024, 64, stream=0), tb.Launch(132, 1024, 64, stream=0)]
    waiting = tb.Launch(66, 1024, 64, stream=1)
    (found,) = tb.outcomes(tb.Sequence([*events, waiting, tb.Release(0)]), "h200")
    assert (found.trace[2].final_smid >= 0).all()
    assert found.trace[1].final_smid is not None
    assert (found.trace[1].final_smid >= 0).sum() == 66


def test_whatever_comes_of_a_race_counts_as_possible() -> None:
    several = 0
    for trace in recorded("waits"):
        found = tb.outcomes(trace.sequence, "h200", races=2)
        assert all(is_possible(outcome.trace) for outcome in found), trace.id
        several += len(found) > 1
    assert several > 15


def test_what_no_order_of_leaving_brings_about_is_impossible() -> None:
    outcome = tb.outcomes(ONE_LEFT, "h200", races=1)[0].trace
    taken = outcome[1].final_smid[:1]
    elsewhere = replace(outcome, placements=(*outcome.placements[:2], Placement(taken, taken)))
    assert is_possible(outcome)
    assert not is_possible(elsewhere)


def test_recording_that_ends_before_the_race_says_so() -> None:
    trace = tb.predict(ONE_LEFT, "h200")
    blind = replace(trace, placements=tuple(Placement(p.smid) for p in trace))
    with pytest.raises(ValueError, match="nobody recorded where blocks were in the end"):
        tb.predict_as_recorded(blind, "h200")


def test_outcomes_of_launches_with_durations_are_refused() -> None:
    timed = tb.Sequence([tb.Launch(1, 32, 16, duration=1e-3)])
    with pytest.raises(ValueError, match="has durations; outcomes needs releases"):
        tb.outcomes(timed, "h200")
    with pytest.raises(ValueError, match=r"outcomes\.races: 0 is outside 1..1048576"):
        tb.outcomes(ONE_LEFT, "h200", races=0)
