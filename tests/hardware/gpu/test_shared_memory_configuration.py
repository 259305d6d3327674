"""Mechanism 3: the first block on an idle TPC sets how much of it is shared memory.

On an H200 it is the first block on an idle SM. What a launch asks for there beyond what its blocks
need: test_configuration_demand.py.
"""

from __future__ import annotations

import pytest

from helpers import KB, fits, gpu, last, launch, released, run, smids
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch

AMPERE = gpu(2)  # one TPC; 8, 16, 32, 64, 100 KB
ALONE = gpu(2, configuration_per_tpc=False)  # the same, each SM configured for itself
BOUNDED = gpu(2, explicit_carveout_is_upper_bound=True)
FIXED = gpu(2, shared_memory_configuration=False)

# Blocks of 16 warps, three to an SM; three of each need the configuration of the key, in KB.
PROBES = {
    size: launch(1, warps=16, shared_memory=(size // 3 - 1) * KB) for size in (8, 16, 32, 64, 100)
}


def admitted(spec: DeviceSpec, *events: object) -> int:
    """The largest configuration, in KB, that a block may ask for beside those there: its own."""
    return max((size for size in PROBES if fits(spec, *events, PROBES[size])), default=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "kilobytes"),
    [
        (launch(), 16),  # Case 3, kernel 1: 16 blocks of 1 KB
        (launch(shared_memory=KB), 32),  # Case 3, kernel 2: 16 blocks of 2 KB
        (launch(shared_memory=KB - 128), 32),
        (launch(shared_memory=3 * KB), 64),
        (launch(shared_memory=3 * KB + 1), 100),  # 16 blocks of 4 KB and a unit
        (launch(shared_memory=5 * KB), 100),
        (launch(shared_memory=99 * KB), 100),
        (launch(warps=6), 8),  # 8 blocks
        (launch(warps=5), 16),  # 9 blocks
        (launch(warps=4, registers=128), 8),  # 4 blocks
        (launch(warps=16, shared_memory=20 * KB), 64),  # 3 blocks of 21 KB
        (launch(warps=16, shared_memory=21 * KB), 100),  # 3 blocks of 22 KB
    ],
)
def test_configuration_is_that_of_as_many_blocks_as_an_sm_holds_rounded_up(
    first: Launch, kilobytes: int
) -> None:
    assert admitted(AMPERE, first) == kilobytes


@pytest.mark.parametrize(
    ("carveout", "shared_memory", "kilobytes"),
    [
        (100, 0, 100),
        (64, 0, 64),  # 64 of 100 KB
        (65, 0, 100),
        (8, 0, 8),
        (9, 0, 16),
        (0, 0, 8),  # the smallest that there is
        (0, 7 * KB, 8),  # the smallest that holds one block
        (0, 7 * KB + 1, 16),
        (0, 63 * KB, 64),
        (0, 63 * KB + 1, 100),
        (32, 63 * KB, 64),
    ],
)
def test_explicit_carveout_rounds_up_and_holds_at_least_one_block(
    carveout: int, shared_memory: int, kilobytes: int
) -> None:
    first = launch(carveout=carveout, shared_memory=shared_memory)
    assert admitted(AMPERE, first) == kilobytes


def test_both_sms_of_a_tpc_have_the_configuration_that_the_first_block_set() -> None:
    # One block on SM 0 sets 16 KB; SM 1 is empty and yet refuses a block that asks for 32 KB.
    second = launch(shared_memory=KB)
    assert last(AMPERE, launch(), second).limiter == "configuration"
    assert last(AMPERE, launch(), second).placed == 0
    assert last(gpu(4), launch(), second).smid.tolist() == [2]


def test_idle_sm_beside_a_busy_one_sets_its_own_where_each_sm_is_configured_for_itself() -> None:
    second = launch(shared_memory=KB)  # 32 KB beside 16 KB
    assert last(AMPERE, launch(), second).limiter == "configuration"
    assert last(ALONE, launch(), second).smid.tolist() == [1]
    # Both SMs are busy: 16 KB on SM 0 and 32 KB on SM 1 take no block that asks for 64 KB...
    third = launch(shared_memory=3 * KB)
    assert last(ALONE, launch(), second, third).limiter == "configuration"
    # ...and SM 1 alone takes another one that asks for 32 KB.
    assert last(ALONE, launch(), second, second).smid.tolist() == [1]


@pytest.mark.parametrize(("leaves", "sm"), [(0, 0), (1, 1)])
def test_sm_configured_for_itself_is_set_anew_as_soon_as_it_is_idle(leaves: int, sm: int) -> None:
    busy = [launch(), launch(), launch(shared_memory=KB)]  # 16 KB on SM 0 and on SM 1; waits
    assert last(ALONE, *busy).limiter == "configuration"
    after = last(ALONE, *busy, *released(leaves)).final_smid
    assert after is not None
    assert after.tolist() == [sm]


def test_first_block_that_left_does_not_free_an_sm_on_which_another_stayed() -> None:
    both = [launch(2), launch(2), launch(shared_memory=KB)]  # two blocks on either SM; waits
    still = last(ALONE, *both, *released(0)).final_smid
    assert still is not None
    assert still.tolist() == [-1]


def test_blocks_of_an_sm_configured_for_itself_share_what_that_one_has() -> None:
    alone = gpu(2, blocks_per_sm=32, configuration_per_tpc=False)
    busy = [launch(carveout=16), launch(carveout=64)]  # 16 KB on SM 0, 64 KB on SM 1
    assert smids(run(alone, *busy)) == [[0], [1]]
    rest = last(alone, *busy, launch(47, carveout=8))  # 1 KB per block
    assert rest.occupancy(2).tolist() == [15, 31]


def test_sms_of_one_sm_per_tpc_are_configured_alone() -> None:
    assert last(gpu(2, sms_per_tpc=1), launch(), launch(shared_memory=KB)).smid.tolist() == [1]


def test_configuration_asked_for_may_be_smaller_or_equal_but_not_larger() -> None:
    first = PROBES[32]
    assert fits(AMPERE, first, PROBES[16])
    assert fits(AMPERE, first, PROBES[32])
    assert not fits(AMPERE, first, PROBES[64])


def test_configuration_stays_until_the_last_block_leaves_the_tpc() -> None:
    before = [launch(), launch(), launch(shared_memory=KB)]  # SM 0, SM 1, waits
    assert last(AMPERE, *before).limiter == "configuration"
    still = last(AMPERE, *before, *released(0))
    assert still.final_smid is not None
    assert still.final_smid.tolist() == [-1]
    idle = last(AMPERE, *before, *released(0, 1))
    assert idle.final_smid is not None
    assert idle.final_smid.tolist() == [0]


def test_configuration_is_not_enlarged_by_a_smaller_one_in_between() -> None:
    # 64 KB stays 64 KB while the TPC is busy, also after the block that set it has left.
    assert admitted(AMPERE, PROBES[64], PROBES[8], *released(0)) == 64


def test_blocks_of_an_sm_share_what_it_is_configured_to_and_not_the_largest() -> None:
    small = gpu(2, blocks_per_sm=32)  # 16 KB on either SM, 1 KB per block
    assert last(small, launch(32, carveout=16)).limiter is None
    assert last(small, launch(33, carveout=16)).limiter == "shared_memory"


def test_larger_sm_refuses_an_explicit_carveout_where_that_is_an_upper_bound() -> None:
    first = launch(carveout=64)
    for carveout, bounded in ((100, True), (64, True), (63, True), (32, False), (0, False)):
        beside = launch(carveout=carveout)
        assert fits(AMPERE, first, beside), carveout
        assert fits(BOUNDED, first, beside) == bounded, carveout
    assert last(BOUNDED, first, launch(carveout=32)).limiter == "configuration"


def test_default_carveout_has_no_upper_bound() -> None:
    assert fits(BOUNDED, launch(carveout=100), launch())


def test_explicit_carveout_above_what_all_blocks_need_enters_what_they_need() -> None:
    # Sixteen blocks of 1 KB need 16 KB; asking for 100 asks for no more than that of a busy TPC.
    assert fits(AMPERE, launch(carveout=16), launch(carveout=100))
    assert not fits(AMPERE, launch(carveout=8), launch(carveout=100))
    assert fits(AMPERE, launch(carveout=8), launch(carveout=8))


def test_without_configurations_every_sm_has_the_largest() -> None:
    assert fits(FIXED, launch(), launch(shared_memory=99 * KB))
    assert last(FIXED, launch(2, shared_memory=99 * KB), launch()).limiter == "shared_memory"
