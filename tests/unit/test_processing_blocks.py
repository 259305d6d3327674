"""Mechanisms 2.1 and 2.2: which processing block of its SM each warp goes to.

A warp of 255 registers takes half of a processing block's registers, so two fill it. The SMs here
have 4 processing blocks of 12 warps each, unless the test says otherwise; shared memory is out of
the way.
"""

from __future__ import annotations

from typing import Any

import pytest

from helpers import fits, gpu, last, launch, released, room
from tbsched.sequence import Launch
from tbsched.spec import DeviceSpec

ROOMY: dict[str, Any] = {"shared_memory_configuration": False, "shared_memory": "pooled"}
STRICT = gpu(**ROOMY)
NO_SKIP = gpu(warp_skip=False, **ROOMY)
FREE = gpu(strict_round_robin=False, warp_skip=False, **ROOMY)
WHOLE = gpu(processing_blocks=1, **ROOMY)


def heavy(warps: int, blocks: int = 1) -> Launch:
    return launch(blocks, warps, registers=255)


@pytest.mark.parametrize(
    ("threads", "blocks"),
    [(96, 16), (97, 12), (128, 12), (129, 9), (256, 6), (257, 5), (512, 3), (513, 2), (1024, 1)],
)
def test_last_warp_slot_fits_one_more_does_not(threads: int, blocks: int) -> None:
    assert room(STRICT, Launch(1, threads, 16)) == blocks


def test_warp_of_one_thread_takes_a_whole_warp_slot() -> None:
    assert last(STRICT, launch(3, warps=15), Launch(3, 1, 16)).limiter is None
    assert last(STRICT, launch(3, warps=15), Launch(4, 1, 16)).limiter == "warps"


def test_warp_waits_for_the_processing_block_in_turn_though_others_have_room() -> None:
    # Blocks of two warps fill processing blocks 0, 1 and 2, 3 in turn; 0 is next again.
    full = [heavy(2), heavy(2), heavy(2), heavy(2)]
    assert fits(STRICT, *full, *released(0, 2), heavy(2))
    assert not fits(STRICT, *full, *released(1, 3), heavy(2))
    assert last(STRICT, *full, *released(1, 3), heavy(2)).limiter == "registers"


@pytest.mark.parametrize("spec", [FREE, WHOLE], ids=["free warps", "no processing blocks"])
def test_without_strict_turns_any_processing_block_with_room_takes_the_warp(
    spec: DeviceSpec,
) -> None:
    full = [heavy(2), heavy(2), heavy(2), heavy(2)]
    assert fits(spec, *full, *released(1, 3), heavy(4))
    assert not fits(spec, *full, *released(1, 3), heavy(5))


def test_processing_block_is_skipped_after_four_warps_so_two_more_fit_three_do_not() -> None:
    before = [heavy(1), heavy(4)]  # 0, then 1 2 3 0, then 1 is skipped
    assert fits(STRICT, *before, heavy(2))
    assert not fits(STRICT, *before, heavy(3))
    assert fits(NO_SKIP, *before, heavy(3))
    assert not fits(NO_SKIP, *before, heavy(4))


def pointer_after(warps: int, spec: DeviceSpec) -> int:
    """The processing block next in turn after a block of so many warps that began at 1.

    A heavy warp stays on 0, so that 4 + n more fit if 0 comes up after n others.
    """
    left = room(spec, heavy(1), launch(1, warps), *released(1), heavy(1))
    return (4 - left) % 4


@pytest.mark.parametrize(
    ("warps", "strict", "no_skip"),
    [
        (1, 2, 2),
        (2, 3, 3),
        (3, 0, 0),
        (4, 2, 1),
        (5, 2, 2),
        (7, 0, 0),
        (8, 2, 1),
        (9, 2, 2),
        (12, 2, 1),
        (31, 0, 0),
        (32, 2, 1),
    ],
)
def test_pointer_moves_by_the_warps_and_by_one_more_after_a_multiple_of_four(
    warps: int, strict: int, no_skip: int
) -> None:
    assert pointer_after(warps, STRICT) == strict
    assert pointer_after(warps, NO_SKIP) == no_skip


def test_pointer_stays_where_it_is_when_a_block_exits() -> None:
    # One light warp that came and went has used up the turn of processing block 1.
    assert room(STRICT, heavy(1), heavy(1)) == 7
    assert room(STRICT, heavy(1), launch(), *released(1), heavy(1)) == 6


def test_pointer_of_each_sm_is_its_own() -> None:
    # Both SMs hold one heavy warp; a light one came and went on SM 0 alone.
    two = gpu(2, **ROOMY)
    before = [heavy(1, blocks=2), launch(), *released(1)]
    assert last(two, *before, heavy(1)).smid.tolist() == [1]
    assert room(two, *before, heavy(1)) == 6 + 7


def test_fullest_processing_block_bounds_the_sm() -> None:
    # 6 of the 12 warps of processing block 0 are taken, none of the others.
    events = [launch(1), launch(1, warps=3)] * 6
    lonely = released(1, 3, 5, 7, 9, 11)
    assert room(STRICT, *events, *lonely, launch(1, warps=4)) == 6
    assert room(WHOLE, *events, *lonely, launch(1, warps=4)) == 10


def test_warps_on_an_sm_are_counted_per_processing_block_of_each_device() -> None:
    # 32 warps in 4 processing blocks of 8.
    turing = gpu(base="pegasus")
    assert last(turing, launch(4, warps=8)).limiter is None
    assert last(turing, launch(5, warps=8)).limiter == "warps"


def test_block_larger_than_any_sm_is_refused_before_it_waits() -> None:
    small = gpu(warps_per_sm=16, threads_per_block=1024)
    assert fits(small, launch(1, warps=16))
    with pytest.raises(ValueError, match=r"launch 0: threads: 544 is more than .* allows, 512"):
        last(small, launch(1, warps=17))
