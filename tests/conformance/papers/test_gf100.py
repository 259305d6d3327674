"""Where T_1 and T_2 of the thesis on GF100 GPUs can hold, and where the H200 contradicts them."""

from __future__ import annotations

import pytest

from conformance.papers.gf100 import (
    REGISTERS_PER_SM,
    SMS,
    c2070,
    filtered,
    filtered_that_fit,
    is_even,
    launches,
    registers_of_two,
    spreads,
    t1,
    t1_impossible,
    t2,
    t2_not_forced,
)
from helpers import BALANCING, recorded
from tbsched.advice.evenness import forced_even
from tbsched.hardware.catalogue import device
from tbsched.papers.published_rules import (
    failed_conditions,
    spreads_evenly,
    spreads_unevenly,
)
from tbsched.prediction.predict import policies
from tbsched.program.sequence import Launch

ALL_POLICIES = [row.name for row in policies()]


def test_t_1_and_t_2_part_the_launches_at_half_of_the_registers() -> None:
    assert (spreads_unevenly(2**14, 2**15), spreads_evenly(2**14, 2**15)) == (True, False)
    assert (spreads_unevenly(2**14 + 1, 2**15), spreads_evenly(2**14 + 1, 2**15)) == (False, True)
    assert (spreads_evenly(2**15, 2**15), spreads_evenly(2**15 + 1, 2**15)) == (True, False)
    assert {*t1(), *t2()} == set(launches())
    assert not {*t1()} & {*t2()}


def test_only_first_fit_has_t_1_and_only_the_others_have_t_2() -> None:
    for row in spreads():
        if row.policy not in BALANCING:
            assert row.t1_right == row.t1 - len(t1_impossible())
            assert row.t2_right == row.t2 - len(t2_not_forced())
        else:
            assert (row.t1_right, row.t2_right) == (0, row.t2)


@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_t_1_cannot_hold_where_warps_leave_room_for_two_blocks_only(policy: str) -> None:
    """From 17 warps on an SM of 48 holds two blocks, so 28 blocks fill 14 SMs."""
    assert min(launch.threads for launch in t1_impossible()) == 17 * 32
    assert all(launch.threads > 16 * 32 for launch in t1_impossible())
    assert {launch for launch in t1() if launch.threads > 16 * 32} == set(t1_impossible())
    assert all(is_even(launch, policy) for launch in t1_impossible())


def test_t_2_is_not_forced_where_three_blocks_fit() -> None:
    """Two blocks then take two thirds of the registers at most; first fit puts three on SM 0."""
    for launch in t2_not_forced():
        assert forced_even(c2070("first_fit"), launch).blocks_per_sm >= 3
        assert 3 * registers_of_two(launch) <= 2 * 2**15
        assert not is_even(launch, "first_fit")


def test_smallest_launches_on_which_t_1_and_t_2_fail() -> None:
    def size(launch: Launch) -> tuple[int, int]:
        return launch.threads, launch.registers

    assert [size(launch) for launch in t1_impossible()] == [
        (17 * 32, 14), (17 * 32, 15), (18 * 32, 14)
    ]  # fmt: skip
    assert (len(t1()), len(t2()), len(t2_not_forced())) == (375, 347, 101)
    # With 18 registers, 13 and the 5 of the thesis's example, T_1 has no such launch.
    assert len([launch for launch in t1() if launch.registers >= 18]) == 309
    assert size(min(t2_not_forced(), key=size)) == (5 * 32, 52)
    assert min(t2_not_forced(), key=size).blocks == 2 * SMS


def test_shipped_device_has_t_1_and_lacks_t_2_where_three_blocks_fit() -> None:
    assert all(is_even(each, device("c2070").policy) == (each in t1_impossible()) for each in t1())
    assert {each for each in t2() if not is_even(each, device("c2070").policy)} == {
        *t2_not_forced()
    }


@pytest.mark.parametrize(
    ("blocks", "warps", "registers", "failed"),
    [
        (28, 10, 30, ()),
        (28, 8, 32, ()),  # exactly half of the registers
        (28, 8, 31, (4,)),
        (28, 16, 33, (4,)),  # more than all of them
        (14, 16, 33, ()),
        (14, 17, 33, (5,)),
        (28, 17, 28, (3,)),
        (29, 10, 30, (2,)),
        (112, 2, 40, (1,)),
        (14, 33, 20, (1, 3, 5)),
    ],
)
def test_each_condition_of_the_filter(
    blocks: int, warps: int, registers: int, failed: tuple[int, ...]
) -> None:
    asked = failed_conditions(blocks, warps, registers, sms=SMS, registers_per_sm=2**15)
    assert asked == failed


def test_filter_of_the_thesis_is_certain_in_535_of_927_launches() -> None:
    """S_lc without T_b: the rest is even under every policy but first fit."""
    accepted, fit = filtered(), filtered_that_fit()
    assert (len(accepted), len(fit)) == (933, 927)
    # Documented units refuse the others: of 20 warps with 51 registers, or 26 with 39.
    assert {
        (each.blocks // SMS * each.threads // 32, each.registers)
        for each in set(accepted) - set(fit)
    } == {(20, 51), (26, 39)}
    certain = {each for each in fit if forced_even(c2070("first_fit"), each)}
    assert len(certain) == 535
    for policy in ALL_POLICIES:
        even = {each for each in fit if is_even(each, policy)}
        assert even == (set(fit) if policy in BALANCING else certain)


def test_filter_accepts_launches_that_t_1_calls_uneven() -> None:
    """Exactly half of the registers: section 8.3 keeps it, section 7.6.1 says never even."""
    half = [
        each
        for each in filtered_that_fit()
        if each.blocks == 2 * SMS and spreads_unevenly(registers_of_two(each), REGISTERS_PER_SM)
    ]
    assert [(each.threads // 32, each.registers) for each in half] == [(8, 32), (16, 16)]


def test_forced_even_is_the_corrected_rule() -> None:
    for launch in launches():
        assert forced_even(c2070("first_fit"), launch).forced == is_even(launch, "first_fit")


def test_h200_spreads_264_blocks_evenly_however_few_registers_they_take() -> None:
    """T_1 would have none of these even: two blocks per SM that take half of the registers or less.

    The smallest of them: 264 blocks of one warp of 12 registers, which take 1.6 % of the registers.
    """
    found = 0
    for name in ("basic", "ptr", "rw", "rr", "rs", "rall", "rrel", "rcarve", "campaign"):
        for trace in recorded(name):
            first = trace.sequence.launches[0]
            if first.blocks != 264 or first.cluster > 1 or trace[0].placed < 264:
                continue
            warps = -(-first.threads // 32)
            registers = 2 * warps * -(-first.registers * 32 // 256) * 256
            if spreads_unevenly(registers, 65536) and not forced_even("h200", first):
                found += 1
                assert set(trace[0].occupancy(132).tolist()) == {2}
    assert found == 15
