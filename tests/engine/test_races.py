"""Blocks find room while others leave: what may come of it, and what may not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb
from helpers import recorded
from tbsched.traces.placement import Placement

FULL = [tb.Launch(132, 1024, 64), tb.Launch(100, 1024, 64)]
PACKED = tb.Sequence(
    [tb.Launch(264, 1024, 32), tb.Launch(132, 256, 32), tb.Release(0), tb.Launch(200, 512, 32)]
)
ONE_LEFT = tb.Sequence([*FULL[:1], tb.Launch(131, 1024, 64), tb.Release(0), tb.Launch(1, 1024, 64)])


def is_possible(trace: tb.Trace, spec: str = "h200") -> bool:
    return tb.compare(tb.predict_as_recorded(trace, spec), trace).occupancy


def test_nothing_waits_so_there_is_one_outcome() -> None:
    sequence = tb.Sequence([tb.Launch(132, 1024, 64), tb.Release(0), tb.Launch(264, 512, 32)])
    (found,) = tb.outcomes(sequence, "h200", races=1000)
    assert found.share == 1
    assert tb.compare(found.trace, tb.predict(sequence, "h200")).exact


def test_launches_that_wait_for_nothing_have_no_limiter() -> None:
    two = tb.Sequence([tb.Launch(1, 64, 32), tb.Launch(1, 64, 32)])
    leaving = tb.Sequence([tb.Launch(132, 1024, 64), tb.Release(0), tb.Launch(132, 1024, 64)])
    for sequence in (two, leaving):
        for found in tb.outcomes(sequence, "h200", races=20):
            assert [placement.limiter for placement in found.trace] == [None, None]
            again = tb.predict_as_recorded(found.trace, "h200")
            assert [placement.limiter for placement in again] == [None, None]


def test_launches_wait_for_the_same_as_where_nothing_is_chance() -> None:
    kernels = [tb.Launch(269, 1024, 64), tb.Launch(132, 256, 32, 16_000), tb.Launch(1, 32, 16)]
    expected = tb.predict(tb.Sequence(kernels), "h200")
    for events in (kernels, [*kernels, tb.Release(0)]):
        for found in tb.outcomes(tb.Sequence(events), "h200", races=20):
            limiters = [placement.limiter for placement in found.trace]
            assert limiters == [placement.limiter for placement in expected]
    assert [placement.limiter for placement in expected] == ["registers", "queue", "queue"]


def test_race_on_which_nothing_later_depends_has_one_outcome() -> None:
    (found,) = tb.outcomes(tb.Sequence([*FULL, tb.Release(0)]), "h200")
    assert found.share == 1
    assert np.unique(found.trace[1].final_smid).size == 100


def test_which_sm_a_race_left_over_is_a_variant_of_one_outcome() -> None:
    (found,) = tb.outcomes(ONE_LEFT, "h200", races=300)
    assert found.share == 1
    assert found.variants > 20
    taken, left = found.trace[1].final_smid, found.trace[2].smid
    assert sorted([*taken.tolist(), *left.tolist()]) == list(range(132))


def test_outcomes_that_pack_differently_are_several_and_the_likeliest_is_first() -> None:
    found = tb.outcomes(PACKED, "h200", races=300)
    packed = [np.sort(np.bincount(one.trace[2].smid, minlength=132)).tolist() for one in found]
    assert len(found) > 2
    assert all(packed.count(each) == 1 for each in packed)
    shares = [outcome.share for outcome in found]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)


def test_an_outcome_includes_what_differs_in_nothing_but_which_sm_is_which() -> None:
    (found,) = tb.outcomes(ONE_LEFT, "h200", races=2)
    mirrored = replace(
        found.trace,
        placements=tuple(Placement(np.where(p.smid < 0, -1, 131 - p.smid)) for p in found.trace),
    )
    nowhere = Placement(np.array([-1]))
    assert found.includes(found.trace)
    assert found.includes(mirrored)
    assert not found.includes(
        replace(found.trace, placements=(*found.trace.placements[:2], nowhere))
    )


def test_an_outcome_is_asked_about_the_same_launches_on_as_many_sms() -> None:
    (found,) = tb.outcomes(ONE_LEFT, "h200", races=2)
    with pytest.raises(TypeError, match="trace"):
        found.includes(ONE_LEFT)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has other launches than"):
        found.includes(tb.predict(tb.Sequence(FULL), "h200"))
    with pytest.raises(ValueError, match="has 82 SMs; the outcome has 132"):
        found.includes(tb.predict(ONE_LEFT, "rtx3090"))


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
    assert several > 10


def test_an_sm_that_is_taken_as_it_is_left_stays_as_it_is_configured() -> None:
    for trace in recorded("kept"):  # 132 KB, where an idle SM would change to 228
        assert not set(trace[1].final_smid) & set(trace[2].smid)  # which has less room there
        assert is_possible(trace)
        assert not is_possible(trace, "h200-no-configuration")


def test_scheduler_stays_with_a_launch_until_all_have_left() -> None:
    first, second = tb.Launch(2, 1024, 64), tb.Launch(260, 256, 32)
    sequence = tb.Sequence([*FULL[:1], first, second, tb.Release(0)])

    def most(spec: tb.DeviceSpec) -> int:
        (found,) = tb.outcomes(sequence, spec, races=1)
        return int(np.bincount(found.trace[2].final_smid).max())

    assert most(tb.device("h200")) == 2
    assert most(replace(tb.device("h200"), launch_switch_ns=0)) > 3


def test_what_no_order_of_leaving_brings_about_is_impossible() -> None:
    outcome = tb.outcomes(ONE_LEFT, "h200", races=1)[0].trace
    taken = outcome[1].final_smid[:1]
    elsewhere = replace(outcome, placements=(*outcome.placements[:2], Placement(taken, taken)))
    assert is_possible(outcome)
    assert not is_possible(elsewhere)


def test_blocks_may_leave_before_any_other_takes_their_room() -> None:
    # Launch 3 finds shared memory from its beginning on, since launch 2 has left.
    small, large = tb.Launch(41, 32, 16), tb.Launch(41, 32, 16, 100_000)
    events = [tb.Launch(82, 32, 16), large, tb.Launch(82, 32, 16), tb.Release(2), small]
    sequence = tb.Sequence([*events, tb.Release(0), replace(large, blocks=82)])
    own = tb.predict(sequence, "rtx3090")
    played = tb.predict_as_recorded(own, "rtx3090")
    assert own[4].placed == 41
    assert all((a.final_smid == b.final_smid).all() for a, b in zip(own, played, strict=True))


def test_turn_goes_on_where_nothing_waits() -> None:
    events = [tb.Launch(8, 256, 64), tb.Launch(8, 64, 32), tb.Release(0), tb.Launch(3, 128, 16)]
    own = tb.predict(tb.Sequence(events), "rtx3090", "round_robin")
    elsewhere = Placement(own[2].smid[::-1].copy(), own[2].smid[::-1].copy())
    other = replace(own, placements=(*own.placements[:2], elsewhere))
    for trace in (own, other):  # the second one is not a prediction
        played = tb.predict_as_recorded(trace, "rtx3090", "round_robin")
        assert played[2].smid.tolist() == own[2].smid.tolist() == [32, 34, 36]


def test_turn_goes_on_after_blocks_that_went_where_they_were_recorded() -> None:
    full, waiting = tb.Launch(82, 1024, 16), tb.Launch(4, 1024, 16)
    sequence = tb.Sequence([full, waiting, tb.Release(0), tb.Launch(2, 1024, 16)])
    own = tb.predict(sequence, "rtx3090", "round_robin")
    assert (own[1].final_smid.tolist(), own[2].smid.tolist()) == ([0, 2, 4, 6], [8, 10])
    taken, after = np.array([0, 2, 4, 40], np.int32), np.array([42, 44], np.int32)
    moved = Placement(own[1].smid, taken), Placement(after, after)
    recording = replace(own, placements=(own[0], *moved))
    played = tb.predict_as_recorded(recording, "rtx3090", "round_robin")
    assert (played[1].final_smid.tolist(), played[2].smid.tolist()) == ([0, 2, 4, 40], [42, 44])


def test_gpc_that_hands_out_next_is_the_one_after_the_last_recorded() -> None:
    spec = tb.device("h200")
    gpc = np.repeat(spec.gpc_of_tpc, spec.sms_per_tpc)
    in_gpcs = tb.Partition(tuple(np.flatnonzero(gpc >= 0).tolist()))
    one = tb.Launch(1, 1024, 64, partition=in_gpcs)
    events = [tb.Launch(132, 1024, 64), one, tb.Release(0), tb.Release(1)]
    own = tb.predict(tb.Sequence([*events, replace(one, blocks=100)]), spec)
    before = int(own[1].final_smid[0])  # type: ignore[index]
    same = np.flatnonzero((gpc == gpc[before]) & (np.arange(len(gpc)) != before))[0]
    other = np.flatnonzero((gpc >= 0) & (gpc != gpc[before]))[0]
    for sm, agrees in ((same, True), (other, False)):
        taken = np.array([sm], np.int32)
        moved = Placement(own[1].smid, taken)
        recording = replace(own, placements=(own[0], moved, own[2]))
        played = tb.predict_as_recorded(recording, spec)
        assert played[1].final_smid.tolist() == [sm]  # type: ignore[union-attr]
        assert (played[2].smid == own[2].smid).all() == agrees


def test_recording_that_ends_before_the_race_says_so() -> None:
    trace = tb.predict(ONE_LEFT, "h200")
    blind = replace(trace, placements=tuple(Placement(p.smid) for p in trace))
    with pytest.raises(ValueError, match="nobody recorded where blocks were in the end"):
        tb.predict_as_recorded(blind, "h200")


def test_time_limit_ends_the_races_and_every_outcome_says_so() -> None:
    (found,) = tb.outcomes(PACKED, "h200", races=1000, seconds=0)
    (first,) = tb.outcomes(PACKED, "h200", races=1)
    assert (found.cut, first.cut) == (True, False)
    assert tb.compare(found.trace, first.trace).exact
    # More races than anybody has time for: those that were played come out as without a limit.
    some = tb.outcomes(PACKED, "h200", races=2**20, seconds=0.2)
    assert {one.cut for one in some} == {True}
    assert sum(one.share for one in some) == pytest.approx(1)
    every = tb.outcomes(PACKED, "h200", races=round(1 / min(one.share for one in some)))
    assert {one.cut for one in every} == {False}


def test_time_limit_cuts_nothing_where_no_race_was_left() -> None:
    without = tb.Sequence([tb.Launch(132, 1024, 64), tb.Release(0), tb.Launch(264, 512, 32)])
    (found,) = tb.outcomes(without, "h200", seconds=0)
    assert not found.cut
    for seconds in (None, 1000):
        again = tb.outcomes(PACKED, "h200", races=50, seconds=seconds)
        assert [one.cut for one in again] == [False] * len(again)
    shares = [
        [one.share for one in tb.outcomes(PACKED, "h200", races=50, seconds=s)]
        for s in (None, 1000)
    ]
    assert shares[0] == shares[1]


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "1"])
def test_time_limit_that_is_none_is_refused(seconds: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"outcomes\.seconds: "):
        tb.outcomes(PACKED, "h200", seconds=seconds)  # type: ignore[arg-type]


def test_outcomes_of_launches_with_durations_are_refused() -> None:
    timed = tb.Sequence([tb.Launch(1, 32, 16, duration=1e-3)])
    with pytest.raises(ValueError, match="has durations; outcomes needs releases"):
        tb.outcomes(timed, "h200")
    with pytest.raises(ValueError, match=r"outcomes\.races: 0 is outside 1..1048576"):
        tb.outcomes(ONE_LEFT, "h200", races=0)
