"""Shared memory: allocated in units of 128 bytes, with 1 KB of the runtime's beside every block.

Mechanism 4: what a block gets must be contiguous on Ampere; on an H200 it may wrap around the end.
"""

from __future__ import annotations

import random

import pytest

from helpers import KB, fits, gpu, last, launch, released, room
from tbsched.program.sequence import Event, Launch, Release

CONTIGUOUS = gpu(shared_memory_configuration=False)
CIRCULAR = gpu(shared_memory="circular", shared_memory_configuration=False)
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


def test_where_contiguous_only_the_largest_gap_counts_for_how_many_blocks_there_is_room() -> None:
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


# -- where it is circular -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exits", "largest"),
    [
        ((0, 9), 20),  # the gaps at the beginning and at the end are one
        ((0, 1, 8, 9), 40),
        ((9, 0, 1), 30),  # in whatever order
        ((0, 4, 5, 9), 20),
        ((0, 4, 5, 6, 9), 30),
        ((0, 8), 10),  # the last piece is between them
        ((0, 2, 4, 6, 8), 10),  # nothing adjacent
        (tuple(range(10)), 100),
    ],
)
def test_circular_block_fits_the_largest_gap_around_the_end_too_and_not_1_kb_more(
    exits: tuple[int, ...], largest: int
) -> None:
    freed = released(*exits)
    assert fits(CIRCULAR, *TENTHS, *freed, block(largest))
    if largest < 100:
        assert not fits(CIRCULAR, *TENTHS, *freed, block(largest + 1))
        assert last(CIRCULAR, *TENTHS, *freed, block(largest + 1)).limiter == "shared_memory"


def test_where_contiguous_the_gaps_at_the_end_and_at_the_beginning_are_two() -> None:
    assert fits(CONTIGUOUS, *TENTHS, *released(0, 9), block(10))
    assert not fits(CONTIGUOUS, *TENTHS, *released(0, 9), block(11))


def test_where_circular_every_gap_counts_for_how_many_blocks_there_is_room() -> None:
    freed = released(0, 1, 2, 4, 5, 6)  # two gaps of 30 KB
    for kilobytes, contiguous, circular, pooled in ((10, 3, 6, 6), (15, 2, 4, 4), (16, 1, 2, 3)):
        events = (*TENTHS, *freed, block(kilobytes))
        assert room(CONTIGUOUS, *events) == contiguous
        assert room(CIRCULAR, *events) == circular
        assert room(POOLED, *events) == pooled


def test_gap_around_the_end_counts_once() -> None:
    freed = released(0, 9, 4)  # 20 KB around the end, 10 KB
    assert room(CIRCULAR, *TENTHS, *freed, block(20)) == 1
    assert room(CIRCULAR, *TENTHS, *freed, block(15)) == 1
    assert room(CIRCULAR, *TENTHS, *freed, block(10)) == 3
    assert room(CONTIGUOUS, *TENTHS, *freed, block(10)) == 1


def test_gap_around_the_end_is_taken_before_higher_ones() -> None:
    freed = released(0, 4, 5, 6, 9)  # 20 KB around the end, 30 KB in the middle
    assert fits(CIRCULAR, *TENTHS, *freed, block(20), block(30))
    assert fits(CIRCULAR, *TENTHS, *freed, block(10), block(10), block(30))
    assert not fits(CIRCULAR, *TENTHS, *freed, block(21), block(30))


def test_gap_at_the_beginning_is_the_lowest_where_a_piece_reaches_the_end() -> None:
    freed = released(0, 5, 6)  # 10 KB at the beginning, 20 KB in the middle
    assert fits(CIRCULAR, *TENTHS, *freed, block(10), block(20))
    assert fits(CIRCULAR, *TENTHS, *freed, block(5), block(20))
    # With 1 KB free at the end, both are one gap, still the lowest.
    eleven = (*TENTHS[:9], block(9), *freed)
    assert fits(CIRCULAR, *eleven, block(11), block(20))
    assert not fits(CIRCULAR, *eleven, block(12), block(20))


def test_gap_before_the_origin_stays_the_highest_until_a_release_joins_it() -> None:
    ninety = TENTHS[:9]  # 10 KB free at the end
    assert fits(CIRCULAR, *ninety, *released(4), block(10), block(10))
    # Lowest first: 9 KB go to the middle, so that 10 KB still fit at the end.
    assert fits(CIRCULAR, *ninety, *released(4), block(9), block(10))
    # Joined with what the first piece leaves, it comes first: 9 KB of its 20 KB are taken.
    assert not fits(CIRCULAR, *ninety, *released(4, 0), block(9), block(20))
    assert fits(CIRCULAR, *ninety, *released(4, 0), block(9), block(11), block(10))


def test_gap_around_the_end_is_filled_from_its_part_at_the_end() -> None:
    freed = released(0, 9)
    assert fits(CIRCULAR, *TENTHS, *freed, block(10), *released(1), block(20))  # 0 to 20 KB
    assert not fits(CIRCULAR, *TENTHS, *freed, block(10), *released(8), block(11))


def test_block_that_wraps_around_leaves_the_rest_of_the_gap_behind_it() -> None:
    wrapped = (*TENTHS, *released(0, 9), block(15))  # from 90 KB to 5 KB
    assert fits(CIRCULAR, *wrapped, block(5))
    assert not fits(CIRCULAR, *wrapped, block(6))
    assert fits(CIRCULAR, *wrapped, *released(1), block(15))
    assert not fits(CIRCULAR, *wrapped, *released(1), block(16))


def test_block_that_wraps_around_alone_leaves_one_gap_of_all_the_rest() -> None:
    alone = (*TENTHS, *released(0, 9), block(15), *released(*range(1, 9)))
    assert room(CIRCULAR, *alone, block(85)) == 1
    assert room(CIRCULAR, *alone, block(86)) == 0


def test_gap_behind_a_block_that_wraps_around_is_the_lowest() -> None:
    freed = (*TENTHS, *released(0, 9), block(15), *released(1, 5, 6))  # 15 KB from 5 KB, 20 KB
    assert fits(CIRCULAR, *freed, block(5), block(20))
    assert fits(CIRCULAR, *freed, block(15), block(20))
    assert not fits(CIRCULAR, *freed, block(16), block(16))


def ring_gaps(cells: list[int | None], origin: int) -> list[list[int]]:
    """The cells of each gap of a ring, by where it begins, seen from the origin."""
    size = len(cells)
    if all(cell is None for cell in cells):
        return [list(range(size))]
    found = []
    for begin in range(size):
        if cells[begin] is None and cells[begin - 1] is not None:
            end = next(end for end in range(begin, 2 * size) if cells[end % size] is not None)
            found.append([cell % size for cell in range(begin, end)])
    return sorted(found, key=lambda gap: (gap[0] - origin) % size)


def test_circular_memory_is_a_ring_of_cells_filled_by_first_fit() -> None:
    """Against cells of 1 KB, one by one: random blocks come and go until one does not fit."""
    rng = random.Random(1)
    for _ in range(300):
        cells: list[int | None] = [None] * 100
        origin = 0
        events: list[Event] = []
        resident: list[int] = []
        launches = 0
        while True:
            if resident and rng.random() < 0.45:
                number = resident.pop(rng.randrange(len(resident)))
                cells = [None if cell == number else cell for cell in cells]
                # A gap on both sides of the origin moves it back to where that gap begins.
                around = [gap for gap in ring_gaps(cells, origin) if origin in gap]
                origin = around[0][0] if around and resident else origin if resident else 0
                events.append(Release(number))
                continue
            kilobytes = rng.choice([rng.randint(6, 15), rng.randint(10, 50)])
            events.append(block(kilobytes))
            gaps = ring_gaps(cells, origin)
            assert room(CIRCULAR, *events) == sum(len(gap) // kilobytes for gap in gaps), events
            large = [gap for gap in gaps if len(gap) >= kilobytes]
            assert fits(CIRCULAR, *events) == bool(large), events
            if not large:
                break
            for cell in large[0][:kilobytes]:
                cells[cell] = launches
            resident.append(launches)
            launches += 1
