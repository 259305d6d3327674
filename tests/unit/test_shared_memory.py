"""Shared memory: allocated in units of 128 bytes, with 1 KB of the runtime's beside every block.

Mechanism 4: what a block gets must be contiguous on Ampere; on an H200 one pool explains more.
"""

from __future__ import annotations

import pytest

from helpers import KB, fits, gpu, last, launch, released, room
from tbsched.sequence import Launch

CONTIGUOUS = gpu(shared_memory_configuration=False)
POOLED = gpu(shared_memory="pooled", shared_memory_configuration=False)


def block(kilobytes: int) -> Launch:
    """A block that takes so many KB of its SM, the runtime's 1 KB included."""
    return launch(shared_memory=(kilobytes - 1) * KB)


@pytest.mark.parametrize(
    ("shared_memory", "blocks"),
    [
        (33024, 3),  # 258 units and 1 KB: 3 x 34048 of 102400 bytes
        (33025, 2),
        (50176, 2),  # 392 units and 1 KB: exactly half
        (50177, 1),
        (99 * KB, 1),
    ],
)
def test_last_shared_memory_unit_fits_one_more_does_not(shared_memory: int, blocks: int) -> None:
    assert room(CONTIGUOUS, launch(shared_memory=shared_memory)) == blocks


def test_largest_block_fits_an_empty_sm_one_byte_more_is_refused_at_once() -> None:
    assert fits(CONTIGUOUS, launch(shared_memory=99 * KB))
    with pytest.raises(ValueError, match=r"launch 0: shared_memory: 101377 .* allows, 101376"):
        last(CONTIGUOUS, launch(shared_memory=99 * KB + 1))


def test_runtime_takes_1_kb_of_every_block_so_eight_empty_ones_fill_8_kb_a_ninth_waits() -> None:
    assert last(gpu(), launch(8, carveout=0)).limiter is None
    ninth = last(gpu(), launch(9, carveout=0))
    assert (ninth.placed, ninth.limiter) == (8, "shared_memory")


def test_runtime_takes_nothing_before_ampere() -> None:
    volta = gpu(base="v100")
    assert last(volta, launch(32, carveout=0)).limiter is None
    assert room(volta, launch(shared_memory=48 * KB)) == 2
    assert room(volta, launch(shared_memory=48 * KB + 1)) == 1


def test_unit_is_256_bytes_before_ampere() -> None:
    volta = gpu(base="v100")  # 96 KB
    assert room(volta, launch(shared_memory=32 * KB)) == 3
    assert room(volta, launch(shared_memory=32 * KB - 255)) == 3
    assert room(volta, launch(shared_memory=24 * KB + 1)) == 3
    assert room(volta, launch(shared_memory=24 * KB)) == 4


def test_shared_memory_of_each_sm_is_its_own() -> None:
    assert last(gpu(2), launch(2, shared_memory=99 * KB)).smid.tolist() == [0, 1]
    assert last(gpu(2), launch(3, shared_memory=99 * KB)).limiter == "shared_memory"


TENTHS = [block(10)] * 10


@pytest.mark.parametrize(
    ("exits", "largest"),
    [
        ((0, 2, 4, 6, 8), 10),  # nothing adjacent
        ((0, 1, 4, 6), 20),
        ((3, 4, 5), 30),
        ((5, 3, 4), 30),  # in whatever order
        ((8, 9), 20),
        (tuple(range(10)), 100),
    ],
)
def test_contiguous_block_fits_the_largest_gap_and_not_1_kb_more(
    exits: tuple[int, ...], largest: int
) -> None:
    freed = released(*exits)
    assert fits(CONTIGUOUS, *TENTHS, *freed, block(largest))
    if largest < 100:
        assert not fits(CONTIGUOUS, *TENTHS, *freed, block(largest + 1))
        assert last(CONTIGUOUS, *TENTHS, *freed, block(largest + 1)).limiter == "shared_memory"


def test_pooled_block_takes_pieces_from_anywhere_up_to_all_that_is_free() -> None:
    scattered = released(0, 2, 4, 6, 8)
    assert fits(POOLED, *TENTHS, *scattered, block(50))
    assert not fits(POOLED, *TENTHS, *scattered, block(51))


def test_only_the_largest_gap_counts_for_how_many_blocks_an_sm_has_room_for() -> None:
    freed = released(0, 2, 3, 4)  # gaps of 10 and 30 KB
    assert room(CONTIGUOUS, *TENTHS, *freed, block(10)) == 3
    assert room(POOLED, *TENTHS, *freed, block(10)) == 4
    # ...but the gap of 10 KB is used all the same: the fourth block finds it.
    assert last(CONTIGUOUS, *TENTHS, *freed, launch(4, shared_memory=9 * KB)).limiter is None
    assert last(CONTIGUOUS, *TENTHS, *freed, launch(5, shared_memory=9 * KB)).placed == 4


def test_lowest_gap_that_is_large_enough_is_taken_though_a_higher_one_fits_better() -> None:
    freed = released(0, 1, 2, 5)  # 30 KB at the bottom, 10 KB above
    assert fits(CONTIGUOUS, *TENTHS, *freed, block(10), block(20))
    assert not fits(CONTIGUOUS, *TENTHS, *freed, block(10), block(30))
    assert fits(CONTIGUOUS, *TENTHS, *freed, block(30), block(10))


def test_gap_too_small_is_passed_over() -> None:
    freed = released(0, 5, 6)  # 10 KB at the bottom, 20 KB above
    assert fits(CONTIGUOUS, *TENTHS, *freed, block(20), block(10))
    assert not fits(CONTIGUOUS, *TENTHS, *freed, block(20), block(11))
