"""What a launch asks of an SM's shared-memory configuration on the H200.

Three numbers: the least and the most that a busy SM may be configured to for a block to enter, and
what the block sets an idle SM to. Beyond what its blocks need, a launch asks for headroom. Each
block takes 1 KB of the runtime's on top of its own.
"""

from __future__ import annotations

import pytest

from helpers import CONFIGURATIONS, KB, admits, asks_for, enters, gpu, launch, run, sets
from tbsched.prediction.predict import policies
from tbsched.program.sequence import Launch

H200 = gpu(base="h200")  # one SM of 64 warps, 32 blocks, 228 KB
PLAIN = gpu(base="h200", configuration_headroom=False)


def from_to(least: int, most: int = 228) -> list[int]:
    return [size for size in CONFIGURATIONS if least <= size <= most]


# -- the probes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", CONFIGURATIONS)
def test_probe_sets_and_enters_one_configuration_with_and_without_headroom(size: int) -> None:
    for spec in (H200, PLAIN):
        assert sets(spec, asks_for(size)) == [size]
        assert enters(spec, asks_for(size)) == [size]


# -- without a carveout ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shared_memory", "plain", "headroom"),
    [
        (KB, 8, 16),  # 4 blocks of 2 KB need 8 KB; 8 blocks, 16 KB
        (KB + 1, 16, 32),  # a unit of 128 bytes more
        (3 * KB, 16, 32),
        (3 * KB + 1, 32, 64),
        (7 * KB, 32, 64),
        (7 * KB + 1, 64, 100),
    ],
)
def test_twice_as_many_blocks_as_fit_are_made_room_for(
    shared_memory: int, plain: int, headroom: int
) -> None:
    four_fit = launch(warps=16, shared_memory=shared_memory)
    assert sets(PLAIN, four_fit) == [plain]
    assert sets(H200, four_fit) == [headroom]


@pytest.mark.parametrize(("registers", "headroom"), [(64, 32), (72, 8)])
def test_blocks_that_fit_are_those_that_every_resource_leaves_room_for(
    registers: int, headroom: int
) -> None:
    # 16 warps of 64 registers: two blocks; of 72 registers: one.
    block = launch(warps=16, registers=registers, shared_memory=7 * KB)
    assert sets(H200, block) == [headroom]


def test_room_is_made_for_28_blocks_at_most() -> None:
    def sixteen_fit(shared_memory: int) -> Launch:
        return launch(warps=4, shared_memory=shared_memory)

    assert sets(H200, sixteen_fit(2560)) == [100]  # 28 of 3584 bytes are 98 KB, 29 are 101.5 KB
    assert sets(H200, sixteen_fit(2561)) == [132]  # 28 of 3712 bytes are 101.5 KB, 27 are 97.9 KB


@pytest.mark.parametrize("warps", [1, 2, 3, 4, 28, 29, 30])
def test_blocks_that_room_is_made_for_and_warps_of_one_are_32_at_most(warps: int) -> None:
    """configurations.json; trace h200/mixed: two warps in mixed_3063, mixed_2035, mixed_1013."""
    blocks, registers = 32 - warps, 64 if warps < 4 else 16
    for size, expected in ((64, 64), (100, 100)):
        most = size * KB // blocks // 128 * 128 - KB
        assert sets(H200, launch(warps=warps, registers=registers, shared_memory=most)) == [
            expected
        ]


def test_more_than_28_blocks_that_fit_get_what_they_need_and_no_more() -> None:
    thirty_two_fit = launch(warps=2, shared_memory=KB)
    assert sets(H200, thirty_two_fit) == sets(PLAIN, thirty_two_fit) == [64]


@pytest.mark.parametrize(
    ("shared_memory", "size"),
    [
        (11 * KB + 512, 100),  # 8 blocks of 12.5 KB
        (11 * KB + 513, 132),
        (15 * KB + 512, 132),  # 8 blocks of 16.5 KB are 132 KB
        (15 * KB + 513, 132),  # and no more is made room for
        (32 * KB, 132),  # the four that fit need 132 KB
        (32 * KB + 1, 164),  # and more: they get what they need
        (48 * KB, 196),
    ],
)
def test_headroom_ends_at_132_kb(shared_memory: int, size: int) -> None:
    assert sets(H200, launch(warps=16, shared_memory=shared_memory)) == [size]


def test_up_to_28_warps_per_block_get_headroom_and_30_do_not() -> None:
    """Between them, 29 were seen to get half of it; see conformance/recorded."""
    assert sets(H200, launch(warps=28, shared_memory=3 * KB)) == [16]  # two blocks fit
    assert sets(H200, launch(warps=30, shared_memory=3 * KB)) == [8]
    assert sets(H200, launch(warps=32, shared_memory=3 * KB)) == [8]


def test_one_block_per_sm_gets_no_headroom() -> None:
    for warps, registers in ((16, 128), (8, 255)):  # all registers of an SM
        block = launch(warps=warps, registers=registers, shared_memory=7 * KB)
        assert sets(H200, block) == sets(PLAIN, block) == [8]
    assert sets(H200, launch(shared_memory=114 * KB)) == [132]  # one fits by its size
    assert sets(H200, launch(shared_memory=113 * KB)) == [228]  # two


def test_headroom_is_asked_of_idle_sms_only() -> None:
    assert enters(H200, launch(warps=16, shared_memory=KB)) == from_to(8)  # sets 16
    assert enters(H200, launch(warps=16, shared_memory=KB + 1)) == from_to(16)
    assert enters(H200, launch(warps=16, shared_memory=11 * KB + 513)) == from_to(64)  # sets 132
    assert enters(H200, launch(warps=16, shared_memory=15 * KB)) == from_to(64)
    assert enters(H200, launch(warps=16, shared_memory=15 * KB + 1)) == from_to(100)


# -- blocks without shared memory -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("warps", "size"), [(1, 32), (4, 32), (15, 32), (16, 16), (23, 16), (24, 8), (29, 8), (32, 8)]
)
def test_blocks_without_shared_memory_ask_by_their_warps(warps: int, size: int) -> None:
    assert sets(H200, launch(warps=warps)) == [size]


def test_one_block_per_sm_without_shared_memory_asks_for_8_kb() -> None:
    assert sets(H200, launch(warps=8, registers=255)) == [8]
    assert sets(H200, launch(warps=8, registers=128)) == [32]  # two
    assert sets(H200, launch(warps=16, registers=72)) == [8]
    assert sets(H200, launch(warps=16, registers=64)) == [16]  # two


@pytest.mark.parametrize(("warps", "least"), [(2, 32), (3, 32), (4, 16), (7, 16), (8, 8), (32, 8)])
def test_blocks_without_shared_memory_enter_what_holds_the_runtime_s_part(
    warps: int, least: int
) -> None:
    assert enters(H200, launch(warps=warps)) == from_to(least)


@pytest.mark.parametrize(("warps", "most"), [(1, 32), (15, 32), (16, 16), (23, 16), (24, 8)])
def test_small_carveout_without_shared_memory_is_raised_to_the_same_sizes(
    warps: int, most: int
) -> None:
    for carveout in (0, 3):
        assert sets(H200, launch(warps=warps, carveout=carveout)) == [most]
        assert enters(H200, launch(warps=warps, carveout=carveout)) == from_to(8, most)


def test_larger_carveout_without_shared_memory_is_what_was_asked_for() -> None:
    assert sets(H200, launch(carveout=14)) == [32]  # 31.9 KB
    assert sets(H200, launch(carveout=15)) == [64]
    assert sets(H200, launch(warps=24, carveout=7)) == [16]
    assert sets(H200, launch(warps=24, carveout=8)) == [32]
    assert sets(H200, launch(carveout=100)) == [228]


# -- with a carveout ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shared_memory", "size"),
    [
        (24 * KB, 100),  # 43 % of 228 KB hold 4 blocks; with the reserve 4 x 25 KB
        (24 * KB + 1, 132),  # 4 x 25.125 KB
        (196 * 128, 132),  # 4 blocks are 98 KB of the 98.04 KB asked for
        (196 * 128 + 1, 100),  # 3 blocks: memory is given out in units of 128 bytes
    ],
)
def test_reserve_of_the_whole_blocks_that_a_carveout_holds_comes_on_top(
    shared_memory: int, size: int
) -> None:
    block = launch(shared_memory=shared_memory, carveout=43)
    assert sets(PLAIN, block) == [100]
    assert sets(H200, block) == [size]
    assert enters(H200, block) == from_to(100, size)


def test_launch_enters_where_as_many_blocks_fit_as_in_what_it_asked_for() -> None:
    """60 % of 228 KB is 164 KB. Trace h200/carve, sequences dcarve2_699 and dcarve2_103."""
    assert enters(H200, launch(shared_memory=56358, carveout=60)) == [132, 164]  # 2 blocks in both
    assert enters(H200, launch(shared_memory=28184, carveout=60)) == [164]  # 5 blocks, 4 in 132 KB


def test_reserve_on_top_of_a_carveout_ends_at_the_largest_configuration() -> None:
    assert sets(H200, launch(shared_memory=KB, carveout=50)) == [228]  # 114 blocks of 2 KB
    assert sets(H200, launch(shared_memory=128, carveout=25)) == [228]
    assert sets(H200, launch(shared_memory=KB, carveout=100)) == [228]


def test_carveout_gets_no_room_for_twice_the_blocks() -> None:
    assert sets(H200, launch(warps=16, shared_memory=KB)) == [16]
    assert sets(H200, launch(warps=16, shared_memory=KB, carveout=3)) == [16]  # 6 blocks, 12 KB
    assert sets(H200, launch(warps=16, shared_memory=KB, carveout=2)) == [8]  # 4 blocks, 8 KB


@pytest.mark.parametrize(
    ("carveout", "shared_memory", "size"),
    [
        (0, 7 * KB, 8),  # the smallest that holds one block
        (0, 7 * KB + 1, 16),
        (0, 63 * KB, 64),
        (0, 63 * KB + 1, 100),
        (10, 63 * KB + 1, 100),
        (100, 227 * KB, 228),
    ],
)
def test_carveout_holds_at_least_one_block(carveout: int, shared_memory: int, size: int) -> None:
    block = launch(shared_memory=shared_memory, carveout=carveout)
    assert sets(H200, block) == [size]
    assert enters(H200, block) == [size]


def test_least_is_what_all_blocks_need_or_the_carveout_whichever_is_smaller() -> None:
    four_fit = {"warps": 16, "shared_memory": KB}  # 8 KB in all
    assert enters(H200, launch(**four_fit, carveout=100)) == from_to(8)
    assert enters(H200, launch(**four_fit, carveout=50)) == from_to(8)
    thirty_two_fit = {"warps": 1, "shared_memory": KB}  # 64 KB in all
    assert enters(H200, launch(**thirty_two_fit, carveout=100)) == from_to(64)
    assert enters(H200, launch(**thirty_two_fit, carveout=14)) == from_to(32, 64)  # reserve on top
    assert enters(H200, launch(**thirty_two_fit, carveout=0)) == [8]


def test_carveout_bounds_what_a_block_enters_and_the_driver_s_choice_does_not() -> None:
    block = launch(warps=16, shared_memory=KB, carveout=2)
    assert admits(H200, asks_for(8), block)
    assert not admits(H200, asks_for(16), block)
    assert admits(H200, asks_for(228), launch(warps=16, shared_memory=KB))


# -- devices other than the H200 ------------------------------------------------------------------


@pytest.mark.parametrize("policy", [row.name for row in policies()])
@pytest.mark.parametrize("carveout", [None, 0, 100])
def test_configuration_holds_a_block_whose_reserve_is_large(
    policy: str, carveout: int | None
) -> None:
    spec = gpu(base="h200", shared_memory_reserve=64 * KB, shared_memory_per_block=KB)
    block = launch(warps=32, carveout=carveout, duration=1e-6)
    (placement,) = run(spec, block, policy=policy)
    assert placement.smid.tolist() == [0]
    assert placement.start_ns is not None
    assert placement.start_ns.tolist() == [spec.launch_latency_ns]


@pytest.mark.parametrize("policy", ["algorithm1", "ampere", "hopper"])
@pytest.mark.parametrize("carveout", [None, 0, 100])
def test_configuration_is_one_that_the_device_has(policy: str, carveout: int | None) -> None:
    spec = gpu(
        base="h200",
        shared_memory_configurations=(8 * KB,),
        shared_memory_reserve=4 * KB,
        shared_memory_per_block=4 * KB,
    )
    (placement,) = run(spec, launch(8, carveout=carveout), policy=policy)
    assert placement.placed == 2
