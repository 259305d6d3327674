"""Leftover policy with first fit: the first SM with room, in order of preference."""

from __future__ import annotations

from helpers import gpu, launch, released, run, smids
from tbsched.program.sequence import Event

FOUR = gpu(4)  # preferred in the order 0, 2, 1, 3


def place(*events: Event) -> list[list[int]]:
    return smids(run(FOUR, *events, policy="first_fit"))


def test_one_sm_is_filled_before_the_next_is_touched() -> None:
    assert place(launch(17)) == [[0] * 16 + [2]]
    assert place(launch(16), launch(1)) == [[0] * 16, [2]]


def test_room_on_an_earlier_sm_is_used_again() -> None:
    assert place(launch(16), launch(1), *released(0), launch(1)) == [[0] * 16, [2], [0]]


def test_sm_without_room_is_passed_over_and_comes_back_for_a_smaller_block() -> None:
    assert place(launch(1, 20), launch(1, 32), launch(1, 20)) == [[0], [2], [0]]


def test_last_block_that_fits_anywhere_is_placed_one_more_waits() -> None:
    assert place(launch(65)) == [[0] * 16 + [2] * 16 + [1] * 16 + [3] * 16 + [-1]]
