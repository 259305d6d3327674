"""T_1 and T_2 of the thesis on GF100 GPUs, for every policy of the table.

The thesis launches 28 blocks of 1 to 24 warps, two for each of the 14 SMs of a Tesla C2070. T_1:
if two blocks take half of an SM's registers or less, they never spread evenly, where the scheduler
has the choice. T_2: if they take more, they always do. It counts a block's registers as its warps
times 32 times those of a thread, without rounding. Which numbers it tried is not said. In its
example (section 7.4) a program has 13 registers for its loop, so here they are 14 to 63 per thread.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

import numpy as np

from tbsched.advice.evenness import forced_even
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.papers.published_rules import failed_conditions, spreads_evenly, spreads_unevenly
from tbsched.prediction.predict import policies, predict
from tbsched.program.sequence import Launch, Sequence

SMS = 14
REGISTERS_PER_SM = 2**15
LEAST_REGISTERS = 14  # of a thread
REGISTER_UNIT = 64  # a warp's registers come in multiples of it: CUDA C++ Programming Guide, 2.0


@dataclass(frozen=True)
class Spread:
    """One row: of how many launches T_1 and T_2 speak, and for how many they are right."""

    policy: str
    t1: int
    t1_right: int
    t2: int
    t2_right: int


@functools.cache
def c2070(policy: str) -> DeviceSpec:
    """The GPU of the thesis with any policy."""
    return dataclasses.replace(device("c2070"), policy=policy)


def registers_of_two(launch: Launch) -> int:
    """What two blocks take of an SM's registers, as the thesis counts."""
    return 2 * -(-launch.threads // 32) * 32 * launch.registers


def allocated_to_two(launch: Launch) -> int:
    """What the GPU allocates to two blocks."""
    warps = -(-launch.threads // 32)
    return 2 * warps * -(-launch.registers * 32 // REGISTER_UNIT) * REGISTER_UNIT


@functools.cache
def launches() -> tuple[Launch, ...]:
    """All of the thesis's launches of which two blocks fit an SM."""
    all_of_them = (
        Launch(2 * SMS, 32 * warps, registers)
        for warps in range(1, 25)
        for registers in range(LEAST_REGISTERS, 64)
    )
    return tuple(each for each in all_of_them if allocated_to_two(each) <= REGISTERS_PER_SM)


@functools.cache
def is_even(launch: Launch, policy: str) -> bool:
    """Whether the policy spreads it evenly."""
    occupancy = predict(Sequence([launch]), c2070(policy))[0].occupancy(SMS)
    return int(np.ptp(occupancy)) == 0


@functools.cache
def filtered() -> tuple[Launch, ...]:
    """All launches that conditions (1) to (5) of S_lc accept."""
    rows = (
        (SMS * blocks, warps, registers)
        for blocks in range(1, 9)
        for warps in range(1, 33)
        for registers in range(LEAST_REGISTERS, 64)
    )
    return tuple(
        Launch(blocks, 32 * warps, registers)
        for blocks, warps, registers in rows
        if not failed_conditions(
            blocks, warps, registers, sms=SMS, registers_per_sm=REGISTERS_PER_SM
        )
    )


@functools.cache
def filtered_that_fit() -> tuple[Launch, ...]:
    """Those of which an SM of the device holds as many blocks as an even spread needs."""

    def fits(launch: Launch) -> bool:
        try:
            found = forced_even(c2070("first_fit"), launch)
        except ValueError:  # not even one block
            return False
        return found.blocks_per_sm * SMS >= launch.blocks

    return tuple(launch for launch in filtered() if fits(launch))


@functools.cache
def t1() -> tuple[Launch, ...]:
    """Launches that T_1 speaks of."""
    return tuple(x for x in launches() if spreads_unevenly(registers_of_two(x), REGISTERS_PER_SM))


@functools.cache
def t2() -> tuple[Launch, ...]:
    """Launches that T_2 speaks of."""
    return tuple(x for x in launches() if spreads_evenly(registers_of_two(x), REGISTERS_PER_SM))


@functools.cache
def t1_impossible() -> tuple[Launch, ...]:
    """Those of T_1 that spread evenly under every policy, as nothing else fits."""
    return tuple(launch for launch in t1() if forced_even(c2070("first_fit"), launch))


@functools.cache
def t2_not_forced() -> tuple[Launch, ...]:
    """Those of T_2 of which three blocks fit an SM."""
    return tuple(launch for launch in t2() if not forced_even(c2070("first_fit"), launch))


@functools.cache
def spreads() -> tuple[Spread, ...]:
    """A row per policy."""
    return tuple(
        Spread(
            row.name,
            len(t1()),
            sum(not is_even(launch, row.name) for launch in t1()),
            len(t2()),
            sum(is_even(launch, row.name) for launch in t2()),
        )
        for row in policies()
    )
