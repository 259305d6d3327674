"""Algorithm 1 of the ICCD 2023 paper, repaired. The paper's own cases: test_table2."""

from __future__ import annotations

import pytest

from helpers import KB, gpu, launch, run, smids
from tbsched.program.sequence import Event, Launch

FOUR = gpu(4)  # preferred in the order 0, 2, 1, 3


def place(*events: Event) -> list[list[int]]:
    return smids(run(FOUR, *events, policy="algorithm1"))


def test_ties_go_to_even_sms_before_odd_ones() -> None:
    assert place(launch(6)) == [[0, 2, 1, 3, 0, 2]]


def test_each_block_of_a_launch_is_decided_anew() -> None:
    # SM 0 has room for two fewer; it is level with the others after they got two each.
    before = launch(1, 8, carveout=100)
    assert place(before, launch(10, 4)) == [[0], [2, 1, 3, 2, 1, 3, 0, 2, 1, 3]]


@pytest.mark.parametrize(
    ("large", "small"),
    [
        (launch(2, 16), launch(2, 8)),
        (launch(2, 8, registers=128), launch(2, 8, registers=64)),
        (launch(2, 8, shared_memory=48 * KB), launch(2, 8, shared_memory=24 * KB)),
    ],
    ids=["warps", "registers", "shared memory"],
)
def test_any_resource_makes_an_sm_less_suitable(large: Launch, small: Launch) -> None:
    assert place(large, small, small)[:2] == [[0, 2], [1, 3]]
    third = place(large, small, Launch(1, 256, small.registers, small.shared_memory))
    assert third[2] == [1]


def test_slots_make_an_sm_less_suitable() -> None:
    assert place(*[launch(1)] * 2, launch(1))[2] == [1]


def test_idle_tpc_has_the_room_of_the_configuration_that_it_would_get() -> None:
    # Three blocks of 33 KB fit 100 KB, not the 64 KB that TPC 0 is set to; TPC 1 is idle.
    sixty_four = launch(1, 16, shared_memory=20 * KB)
    assert place(sixty_four, launch(1, 16, shared_memory=32 * KB))[1] == [2]


def test_blocks_that_fit_nowhere_wait() -> None:
    assert place(launch(65)) == [[0, 2, 1, 3] * 16 + [-1]]
