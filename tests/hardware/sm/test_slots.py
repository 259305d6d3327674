"""Every block holds a slot of its SM, however small it is."""

from __future__ import annotations

import pytest

from helpers import gpu, last, launch, released, run
from tbsched.hardware.catalogue import device, devices
from tbsched.program.sequence import Launch


@pytest.mark.parametrize("name", devices())
def test_smallest_block_takes_a_slot_and_one_more_than_all_slots_waits(name: str) -> None:
    full = device(name).blocks_per_sm * device(name).sms
    assert last(name, Launch(full, 1, 1)).limiter is None
    one_more = last(name, Launch(full + 1, 1, 1))
    assert (one_more.placed, one_more.limiter) == (full, "slots")


def test_kernels_share_the_slots_of_an_sm() -> None:
    assert last(gpu(), launch(10), launch(6)).placed == 6
    assert last(gpu(), launch(10), launch(7)).limiter == "slots"


def test_slot_is_free_again_after_a_release_and_not_before() -> None:
    assert last(gpu(), launch(16), launch(1)).placed == 0
    assert last(gpu(), launch(15), launch(1), *released(0), launch(15)).placed == 15
    assert last(gpu(), launch(15), launch(1), *released(0), launch(16)).placed == 15


def test_slots_of_each_sm_are_its_own() -> None:
    trace = run(gpu(2), launch(32), launch(1))
    assert sorted(trace[0].smid) == [0] * 16 + [1] * 16
    assert trace[1].placed == 0
