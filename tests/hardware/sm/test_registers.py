"""Registers: allocated per warp in units, from the file of the warp's processing block.

Mechanism 4: a warp's registers need not be contiguous.
"""

from __future__ import annotations

from typing import Any

import pytest

from helpers import fits, gpu, last, launch, released, room
from tbsched.program.sequence import Launch

ROOMY: dict[str, Any] = {"shared_memory_configuration": False, "shared_memory": "pooled"}
POOLED = gpu(**ROOMY)
CONTIGUOUS = gpu(registers="contiguous", **ROOMY)


@pytest.mark.parametrize(
    ("registers", "blocks"),
    [(80, 6), (81, 5), (96, 5), (97, 4), (128, 4), (129, 3), (168, 3), (169, 2), (255, 2)],
)
def test_last_register_unit_fits_one_more_does_not(registers: int, blocks: int) -> None:
    """8 registers of 32 threads are a unit; blocks of 4 warps put one on each processing block."""
    assert room(POOLED, Launch(1, 128, registers)) == blocks


@pytest.mark.parametrize(("registers", "blocks"), [(14, 16), (40, 12), (64, 8), (72, 7), (128, 4),
                                                   (200, 2), (255, 2)])  # fmt: skip
def test_blocks_of_128_threads_resident_on_an_h200_sm(registers: int, blocks: int) -> None:
    assert room(gpu(base="h200"), Launch(1, 128, registers)) == blocks


def test_unit_of_512_registers_is_16_per_thread() -> None:
    coarse = gpu(register_unit=512, **ROOMY)
    assert room(coarse, Launch(1, 128, 96)) == 5
    assert room(coarse, Launch(1, 128, 97)) == 4
    assert room(coarse, Launch(1, 128, 112)) == 4
    assert room(POOLED, Launch(1, 128, 112)) == 4


def test_last_thread_of_a_warp_costs_no_registers_one_more_warp_does() -> None:
    assert room(POOLED, Launch(1, 128, 255)) == room(POOLED, Launch(1, 97, 255)) == 2
    assert room(POOLED, Launch(1, 129, 255)) == 1


def test_registers_belong_to_one_processing_block() -> None:
    # Five warps leave 3 processing blocks with room for one more warp each, the first with none.
    before = launch(1, warps=5, registers=255)
    assert fits(POOLED, before, launch(1, warps=3, registers=255))
    assert not fits(POOLED, before, launch(1, warps=4, registers=255))
    assert last(POOLED, before, launch(1, warps=4, registers=255)).limiter == "registers"


def test_registers_of_exited_blocks_are_free_again() -> None:
    full = [launch(1, warps=4, registers=128)] * 4
    assert not fits(POOLED, *full, launch(1, warps=4, registers=8))
    assert fits(POOLED, *full, *released(2), launch(1, warps=4, registers=128))
    assert not fits(POOLED, *full, *released(2), launch(1, warps=4, registers=129))


QUARTERS = [launch(1, warps=4, registers=64)] * 8


def test_scattered_registers_make_a_warp_where_they_are_pooled_and_not_where_contiguous() -> None:
    wide = launch(1, warps=4, registers=255)
    scattered = released(1, 3, 5, 7)
    assert fits(POOLED, *QUARTERS, *scattered, wide)
    assert not fits(CONTIGUOUS, *QUARTERS, *scattered, wide)
    assert last(CONTIGUOUS, *QUARTERS, *scattered, wide).limiter == "registers"


@pytest.mark.parametrize(
    ("released_before", "registers", "fit"),
    [
        ((0, 1, 2, 3), 255, True),  # one gap of 256
        ((0, 1, 2), 192, True),
        ((0, 1, 2), 193, False),
        ((0, 1, 3, 4), 128, True),  # two gaps of 128
        ((0, 1, 3, 4), 136, False),
        ((7,), 64, True),
        ((7,), 65, False),
    ],
)
def test_contiguous_registers_come_from_one_gap(
    released_before: tuple[int, ...], registers: int, fit: bool
) -> None:
    block = launch(1, warps=4, registers=registers)
    assert fits(CONTIGUOUS, *QUARTERS, *released(*released_before), block) == fit


def test_pieces_that_fit_several_gaps_are_counted_over_all_of_them() -> None:
    scattered = released(1, 3, 5, 7)
    assert room(CONTIGUOUS, *QUARTERS, *scattered, launch(1, warps=4, registers=64)) == 4
    assert room(CONTIGUOUS, *QUARTERS, *scattered, launch(1, warps=4, registers=32)) == 8


def test_more_registers_per_warp_than_a_processing_block_has_are_refused_at_once() -> None:
    assert fits(POOLED, Launch(1, 1024, 64))
    with pytest.raises(ValueError, match=r"launch 0: registers: 65 per thread .* holds, 64"):
        last(POOLED, Launch(1, 1024, 65))
