"""Gilman et al. 2020: the SM with room for most blocks, on SMs seen as one pool each."""

from __future__ import annotations

from helpers import KB, gpu, launch, released, run, smids
from tbsched.program.sequence import Event

FOUR = gpu(4)  # preferred in the order 0, 2, 1, 3


def place(*events: Event, policy: str = "most_room") -> list[list[int]]:
    return smids(run(FOUR, *events, policy=policy))


def test_equally_empty_sms_are_taken_in_order_of_preference() -> None:
    assert place(launch(5)) == [[0, 2, 1, 3, 0]]


def test_sm_with_room_for_more_blocks_is_taken_first() -> None:
    assert place(launch(3, 8), launch(2)) == [[0, 2, 1], [3, 0]]


def test_room_is_counted_in_blocks_of_the_launch_at_hand() -> None:
    # SM 0 has the fewest warps left and the most slots.
    before = [launch(1, 24), *[launch(3, 2)] * 3]
    assert place(*before) == [[0], [2, 1, 3], [2, 1, 3], [2, 1, 3]]
    assert place(*before, launch(1, 16))[-1] == [2]
    assert place(*before, launch(1, 1))[-1] == [0]


def test_it_knows_no_configurations_and_no_contiguity() -> None:
    refused = [launch(4), launch(shared_memory=KB)]
    assert place(*refused)[1] == [0]
    assert place(*refused, policy="algorithm1")[1] == [-1]
    tenths = [launch(4, shared_memory=9 * KB)] * 10
    scattered = [*tenths, *released(0, 2, 4, 6, 8), launch(shared_memory=49 * KB)]
    assert place(*scattered)[-1] == [0]
    assert place(*scattered, policy="algorithm1")[-1] == [-1]


def test_it_knows_no_processing_blocks() -> None:
    full = [launch(4, 2, registers=255)] * 4
    last = [*full, *released(1, 3), launch(4, 4, registers=255)]
    assert place(*last)[-1] == [0, 2, 1, 3]
    assert place(*last, policy="algorithm1")[-1] == [-1, -1, -1, -1]
