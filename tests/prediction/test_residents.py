"""What every SM holds at a moment of a prediction, against what is known of it in other ways."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings

import tbsched as tb
from helpers import KB, RESERVE, gpu, launch
from tbsched.strategies import programs, sequences

FEW = settings(deadline=None, derandomize=True, max_examples=40)


def last_placed(trace: tb.Trace, events: int) -> np.ndarray:
    """Blocks of each launch on each SM after so many events, by predicting no more than those."""
    cut = tb.predict(trace.sequence[:events], "h200")
    released = {event.launch for event in cut.sequence if isinstance(event, tb.Release)}
    found = np.zeros((len(cut), cut.device.sms), np.int64)
    for number, placement in enumerate(cut):
        assert placement.final_smid is not None
        if number not in released:
            sms = placement.final_smid[placement.final_smid >= 0]
            found[number] = np.bincount(sms, minlength=cut.device.sms)
    return found


@FEW
@given(sequences("h200"))
def test_after_each_event_an_sm_holds_what_was_placed_and_not_released(seq: tb.Sequence) -> None:
    trace = tb.predict(seq, "h200")
    for events in (len(seq) // 2, len(seq)):
        held = trace.residents(events)
        expected = last_placed(trace, events)
        found = np.zeros_like(expected)
        np.add.at(found, (held.rows["launch"], held.rows["sm"]), held.rows["blocks"])
        assert np.array_equal(found, expected)
        assert (held.used_slots <= held.limits.block_slots).all()
        assert (held.used_warps <= held.limits.warp_slots).all()
        assert (held.used_registers <= held.limits.registers).all()
        assert (held.used_shared_memory <= held.configured).all()
        slots = [bin(mask).count("1") for mask in held.rows["warp_slots"].tolist()]
        assert slots == held.rows["warps"].sum(axis=1).tolist()


@FEW
@given(programs("h200"))
def test_at_each_moment_an_sm_holds_the_blocks_that_run(seq: tb.Sequence) -> None:
    trace = tb.predict(seq, "h200")
    if not len(trace):
        return
    rows = trace.timeline
    for at in (0.0, None):
        held = trace.residents(at)
        now = round(held.at * 1e9)
        leave = rows["end_ns"] + tb.device("h200").exit_latency_ns
        there = rows[(rows["start_ns"] <= now) & (leave > now)]
        expected = np.bincount(there["sm"], minlength=trace.device.sms)
        assert np.array_equal(held.used_slots, expected)


def test_most_blocks_are_resident_when_nobody_says_when() -> None:
    durations = (launch(2, duration=1.0), launch(3, stream=0, duration=2.0))
    trace = tb.predict(tb.Sequence([*durations, launch(4, stream=0, duration=1.0)]), gpu())
    held = trace.residents()
    assert held.used_slots.tolist() == [5]
    assert trace.residents(2.5).used_slots.tolist() == [4]
    assert trace.residents(9.0).used_slots.tolist() == [0]


def test_pieces_of_shared_memory_leave_gaps_where_blocks_left() -> None:
    asks = [launch(1, shared_memory=size * KB - RESERVE, carveout=100) for size in (8, 16, 4)]
    held = tb.predict(tb.Sequence([*asks, tb.Release(1)]), gpu(base="h200")).residents()
    assert held.pieces[["begin", "end"]].tolist() == [(0, 8 * KB), (24 * KB, 28 * KB)]
    assert held.pieces["launch"].tolist() == [0, 2]
    assert held.used_shared_memory.tolist() == [12 * KB]
    assert held.configured.tolist() == [228 * KB]
    assert held.of(0)["launch"].tolist() == [0, 2]


def test_warps_are_counted_by_processing_block_as_the_policy_knows_them() -> None:
    seq = tb.Sequence([launch(1, 6, 32)])
    held = tb.predict(seq, gpu()).residents()
    assert held.rows["warps"].tolist() == [[2, 2, 1, 1]]
    assert held.used_registers.tolist() == [[2048, 2048, 1024, 1024]]
    whole = tb.predict(seq, gpu(), "most_room").residents()
    assert whole.used_warps.tolist() == [[6]]
    assert whole.limits.registers == 4 * held.limits.registers


def test_prediction_that_was_sent_to_another_process_still_answers() -> None:
    trace = pickle.loads(pickle.dumps(tb.predict(tb.Sequence([launch(3)]), "h200")))
    assert trace.residents().used_slots.sum() == 3
    many = tb.predict_many([tb.Sequence([launch(2, duration=1.0)])], "h200", launch_interval=1.0)
    assert many[0].residents(0.5).used_slots.sum() == 2


def test_moment_that_is_not_there_and_observations_are_refused() -> None:
    trace = tb.predict(tb.Sequence([launch(1)]), gpu())
    with pytest.raises(ValueError, match=r"residents.at: 2 is outside 0..1"):
        trace.residents(2)
    with pytest.raises(TypeError, match=r"residents.at: .* 0.5"):
        trace.residents(0.5)
    with pytest.raises(ValueError, match=r"outside 0\.\.0"):
        trace.residents().of(1)
    observed = tb.Trace(trace.sequence, trace.device, trace.placements)
    with pytest.raises(ValueError, match="only a prediction knows what an SM holds"):
        observed.residents()


def test_turn_is_where_the_next_warp_goes() -> None:
    spec = gpu(base="rtx3090")
    seq = tb.Sequence([launch(1, 3), launch(1, 4), tb.Release(0), tb.Release(1)])
    turns = [tb.predict(seq, spec).residents(events).turn.tolist() for events in range(5)]
    # Four warps end where they began, and one processing block more is skipped; no exit resets it.
    assert turns == [[0], [3], [0], [0], [0]]
    free = gpu(base="rtx3090", strict_round_robin=False)
    assert tb.predict(seq[:1], free).residents().turn.tolist() == [-1]
