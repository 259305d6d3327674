"""The baseline: the next SM with room, in turn, on SMs seen as one pool each."""

from __future__ import annotations

import pytest

from helpers import gpu, launch, released, run, smids
from tbsched.program.sequence import Event

FOUR = gpu(4)  # preferred in the order 0, 2, 1, 3


def place(*events: Event) -> list[list[int]]:
    return smids(run(FOUR, *events, policy="round_robin"))


def test_blocks_go_round_the_sms_in_order_of_preference() -> None:
    assert place(launch(6)) == [[0, 2, 1, 3, 0, 2]]


def test_next_launch_goes_on_where_the_last_one_ended() -> None:
    assert place(launch(3), launch(3)) == [[0, 2, 1], [3, 0, 2]]


def test_full_sm_is_passed_over_and_its_turn_with_it() -> None:
    assert place(launch(2, 32), launch(4, 24)) == [[0, 2], [1, 3, 1, 3]]


def test_turn_does_not_depend_on_the_room_left() -> None:
    # SM 2 is busier than SM 1 and 3, and is next all the same.
    assert place(launch(2, 20), *released(0), launch(2, 1), launch(1)) == [[0, 2], [1, 3], [0]]


@pytest.mark.parametrize(("kilobytes", "placed"), [(99, True), (100, False)])
def test_it_knows_no_configurations(kilobytes: int, placed: bool) -> None:
    before = launch(4)  # 1 KB of 100 on each SM
    if placed:
        assert place(before, launch(shared_memory=(kilobytes - 1) * 1024))[1] != [-1]
    else:
        assert place(before, launch(shared_memory=(kilobytes - 1) * 1024))[1] == [-1]


def test_it_knows_no_processing_blocks() -> None:
    # Strict turns would refuse the last launch: see test_processing_blocks.
    full = [launch(4, 2, registers=255)] * 4
    assert -1 not in place(*full, *released(1, 3), launch(4, 4, registers=255))[4]
