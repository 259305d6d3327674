"""Which numbers of blocks leave an idle GPU no choice but to spread them evenly."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from helpers import gpu, launch
from tbsched.advice.evenness import forced_even
from tbsched.hardware.catalogue import device
from tbsched.program.sequence import Launch

FOUR = gpu(4)  # an SM holds 16 blocks and 48 warps


@pytest.mark.parametrize(
    ("blocks", "warps", "forced"),
    [
        (1, 24, True),  # one block is somewhere
        (2, 24, False),  # two may share an SM
        (6, 24, False),  # 2, 2, 2, 0
        (7, 24, True),  # 2, 2, 2, 1
        (8, 24, True),
        (9, 24, False),  # one waits
        (2, 25, True),  # one per SM
        (4, 25, True),
        (5, 25, False),
        (8, 17, True),
        (8, 16, False),  # three fit
        (11, 16, True),
    ],
)
def test_only_a_full_gpu_or_one_block_per_sm_leaves_no_choice(
    blocks: int, warps: int, forced: bool
) -> None:
    assert forced_even(FOUR, launch(blocks, warps)).forced == forced


@pytest.mark.parametrize(
    ("fits", "more", "limiter"),
    [
        ({"warps": 24}, {"warps": 25}, "warps"),
        ({"warps": 16, "registers": 64}, {"warps": 16, "registers": 65}, "registers"),
        ({"shared_memory": 49 * 1024}, {"shared_memory": 49 * 1024 + 1}, "shared_memory"),
    ],
    ids=["warps", "registers", "shared memory"],
)
def test_any_resource_may_be_the_one_that_keeps_a_third_or_second_block_away(
    fits: dict[str, Any], more: dict[str, Any], limiter: str
) -> None:
    two, one = (forced_even(FOUR, launch(4, **rest)) for rest in (fits, more))
    assert (two.blocks_per_sm, two.forced) == (2, False)
    assert (one.blocks_per_sm, one.forced, one.limiter) == (1, True, limiter)


def test_thread_block_slots_may_be_it_too() -> None:
    found = forced_even(FOUR, launch(64))
    assert (found.blocks_per_sm, found.limiter, found.forced) == (16, "slots", True)
    assert not forced_even(FOUR, launch(62))


def test_carveout_too_small_for_two_blocks_leaves_one_per_sm() -> None:
    kernel = launch(2, shared_memory=7 * 1024)
    assert not forced_even(FOUR, dataclasses.replace(kernel, carveout=100))
    assert forced_even(FOUR, dataclasses.replace(kernel, carveout=0))


def test_processing_blocks_can_hold_fewer_blocks_than_the_sm_as_one_pool() -> None:
    """40 registers, 17 warps: 12 warps on each of four processing blocks, or 51 on the whole."""
    kernel = launch(8, 17, 40)
    wide = gpu(4, warps_per_sm=64)
    assert forced_even(wide, kernel).blocks_per_sm == 2
    assert forced_even(wide, kernel)
    pooled = dataclasses.replace(wide, policy="most_room")
    assert forced_even(pooled, kernel).blocks_per_sm == 3
    assert not forced_even(pooled, kernel)


def test_a_single_sm_is_even_as_long_as_all_blocks_fit() -> None:
    assert forced_even(gpu(1), launch(16))
    assert not forced_even(gpu(1), launch(17))


def test_one_cluster_is_even_and_two_are_not_unless_an_sm_holds_one_block() -> None:
    def clusters(count: int, threads: int) -> Launch:
        return Launch(8 * count, threads, 32, cluster=8)

    assert forced_even("h200", clusters(1, 256))
    assert not forced_even("h200", clusters(2, 256))
    assert forced_even("h200", dataclasses.replace(clusters(2, 1024), registers=64))


def test_durations_streams_and_priorities_do_not_matter() -> None:
    plain = launch(8, 24)
    other = dataclasses.replace(plain, duration=1.0, stream=3, priority=-1)
    assert forced_even(FOUR, plain) == forced_even(FOUR, other)
    after = dataclasses.replace(other, programmatic=True, meets="a", gpu=1)
    assert forced_even(FOUR, plain) == forced_even(FOUR, after)


def test_reason_names_the_numbers_that_decide() -> None:
    assert str(forced_even(FOUR, launch(7, 24))) == (
        "even: 7 blocks fill 4 SMs x 2, one place left"
    )
    assert str(forced_even(FOUR, launch(6, 24))) == (
        "not guaranteed to be even: an SM holds 2 blocks, which leaves room for an uneven spread"
    )
    assert forced_even(FOUR, launch(9, 24)).reason == "more than one wave, 4 SMs x 2 blocks"


def test_share_is_what_each_sm_gets_if_the_spread_is_even() -> None:
    shares = [forced_even(FOUR, launch(blocks, 24)).share for blocks in (3, 4, 5, 8)]
    assert shares == [(0, 1), (1, 1), (1, 2), (2, 2)]


def test_launch_that_cannot_run_or_is_none_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"registers: 255 per thread with 1024 threads"):
        forced_even("h200", Launch(1, 1024, 255))
    with pytest.raises(TypeError, match=r"launch: a Launch is needed, got 3"):
        forced_even(device("h200"), 3)  # type: ignore[arg-type]
