"""Two traces of one sequence, compared block by block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers import launch, run
from tbsched.comparison.compare import check_level, compare
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.trace import Trace

FOUR = DeviceInfo("four", 4)
TWO = Sequence([Launch(3, 32, 16), Launch(2, 32, 16)])


def trace(*rows: list[int], device: DeviceInfo = FOUR) -> Trace:
    return Trace(TWO, device, tuple(Placement(np.array(row, np.int32)) for row in rows))


BASE = trace([0, 1, 2], [3, -1])


@pytest.mark.parametrize(
    ("other", "occupancy", "exact"),
    [
        (([0, 1, 2], [3, -1]), True, True),
        (([2, 1, 0], [3, -1]), True, False),
        (([0, 1, 2], [-1, 3]), True, False),
        (([0, 1, 1], [3, -1]), False, False),
        (([0, 1, 2], [3, 3]), False, False),
        (([0, 1, 2], [-1, -1]), False, False),
    ],
)
def test_occupancy_counts_blocks_per_sm_and_exact_wants_each_block(
    other: tuple[list[int], list[int]], occupancy: bool, exact: bool
) -> None:
    for diff in (compare(BASE, trace(*other)), compare(trace(*other), BASE)):
        assert (diff.occupancy, diff.exact) == (occupancy, exact)
        assert diff.agrees("occupancy") == diff.agrees() == occupancy
        assert diff.agrees("exact") == exact
        assert (diff.first_divergence is None) == exact


def test_blocks_on_the_same_sms_in_different_launches_are_a_difference() -> None:
    assert not compare(trace([0, 1, 2], [3, 3]), trace([0, 1, 3], [2, 3])).occupancy


def test_first_divergence_is_the_first_of_the_coarsest_level() -> None:
    divergence = compare(BASE, trace([2, 1, 0], [2, -1])).first_divergence
    assert divergence is not None
    assert (divergence.launch, divergence.level) == (1, "occupancy")
    assert divergence.blocks.tolist() == [0]
    assert divergence.sms.tolist() == [2, 3]
    assert divergence.a_blocks.tolist() == [0, 0, 0, 1]
    assert divergence.b_blocks.tolist() == [0, 0, 1, 0]
    assert divergence.capacity is None


def test_divergence_in_order_alone_names_blocks_and_no_sms() -> None:
    divergence = compare(BASE, trace([2, 1, 0], [3, -1])).first_divergence
    assert divergence is not None
    assert (divergence.launch, divergence.level) == (0, "exact")
    assert divergence.blocks.tolist() == [0, 2]
    assert divergence.sms.tolist() == []


def test_divergence_from_a_prediction_says_what_each_sm_had_room_for() -> None:
    sequence = Sequence([launch(3), launch(1)])
    a, b = (predict(sequence, "rtx3090", policy) for policy in ("ampere", "first_fit"))
    divergence = compare(a, b).first_divergence
    assert divergence is not None
    assert divergence.capacity is not None
    assert divergence.capacity.blocks.tolist() == [16] * 82


def test_traces_of_different_sequences_are_refused() -> None:
    with pytest.raises(ValueError, match="compare: sequence: "):
        compare(run("rtx3090", launch(1)), run("rtx3090", launch(2)))


def test_traces_of_devices_of_different_size_are_refused_with_both_sizes() -> None:
    with pytest.raises(ValueError, match=r"compare: device\.sms: .* has 82, .* has 132"):
        compare(run("rtx3090", launch(1)), run("h200", launch(1)))
    other = run("h200", launch(1))
    named = replace(other, device=replace(other.device, name="\x1b[31mH200"))
    with pytest.raises(ValueError, match=r"has 82, \ufffd\[31mH200 has 132"):
        compare(run("rtx3090", launch(1)), named)


def test_only_traces_are_compared() -> None:
    with pytest.raises(TypeError, match="a Trace is needed, got None"):
        compare(BASE, None)  # type: ignore[arg-type]


def test_level_that_there_is_not_is_refused_with_those_there_are() -> None:
    assert check_level("exact") == "exact"
    with pytest.raises(ValueError, match="level: 'sm' is not one of occupancy, exact"):
        compare(BASE, BASE).agrees("sm")


def slotted(*rows: list[list[int]] | None) -> Trace:
    """BASE with the warp slots of each launch's blocks."""
    placements = (
        Placement(placement.smid, warp_slots=None if row is None else np.array(row, np.int32))
        for placement, row in zip(BASE, rows, strict=True)
    )
    return Trace(TWO, FOUR, tuple(placements))


SLOTS = slotted([[0], [1], [2]], [[3], [-1]])


@pytest.mark.parametrize(
    ("other", "agree"),
    [
        (slotted([[0], [1], [2]], [[3], [-1]]), True),
        (slotted([[3], [3], [0]], [[3], [-1]]), True),  # each SM has its own rotation
        (slotted([[0], [1], [2]], [[3], [7]]), True),  # the block came later
        (slotted([[0], [1], [6]], [[3], [-1]]), False),  # another index
    ],
)
def test_warp_slots_agree_up_to_a_rotation_of_each_sm(other: Trace, agree: bool) -> None:
    assert compare(SLOTS, other).warp_slots_agree() is agree
    assert compare(other, SLOTS).warp_slots_agree() is agree


@pytest.mark.parametrize(("second", "agree"), [([[2, 3]], True), ([[2, 1]], False)])
def test_all_warps_of_an_sm_share_one_rotation(second: list[list[int]], agree: bool) -> None:
    def one_block(slots: list[list[int]]) -> Trace:
        placement = Placement(np.array([0], np.int32), warp_slots=np.array(slots, np.int32))
        return Trace(Sequence([Launch(1, 64, 16)]), FOUR, (placement,))

    assert compare(one_block([[0, 1]]), one_block(second)).warp_slots_agree() is agree


def test_slots_on_other_sms_do_not_agree() -> None:
    other = trace([1, 0, 2], [3, -1])
    moved = Trace(
        TWO,
        FOUR,
        tuple(
            Placement(p.smid, warp_slots=q.warp_slots) for p, q in zip(other, SLOTS, strict=True)
        ),
    )
    assert not compare(SLOTS, moved).warp_slots_agree()


@pytest.mark.parametrize("second", [None, [[3]]])
def test_slots_of_every_block_are_needed_to_compare_them(second: list[list[int]] | None) -> None:
    with pytest.raises(ValueError, match="warp_slots: both traces need those of every block"):
        compare(SLOTS, slotted([[0], [1], [2]], second)).warp_slots_agree()


def test_number_of_processing_blocks_to_rotate_is_positive() -> None:
    assert compare(SLOTS, SLOTS).warp_slots_agree(1)
    with pytest.raises(ValueError, match="processing_blocks: 0 is outside"):
        compare(SLOTS, SLOTS).warp_slots_agree(0)
