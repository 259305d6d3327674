"""The same answers as algorithm1, level by level. That it is so in general: tests/contract."""

from __future__ import annotations

import pytest

from helpers import KB, gpu, launch, released, run, smids
from tbsched.program.sequence import Event

FOUR = gpu(4)
TENTHS = [launch(1, shared_memory=9 * KB)] * 10


@pytest.mark.parametrize(
    "events",
    [
        [launch(65)],
        [launch(1, 8), launch(100, 4)],
        [launch(3, 7), launch(40, 3), *released(0), launch(30, 5)],
        [launch(2, 16), launch(2, 8), launch(40, 3, registers=100)],
    ],
    ids=["levels", "unequal levels", "releases", "mixed"],
)
def test_levels_give_the_choices_of_algorithm_1(events: list[Event]) -> None:
    by_level = smids(run(FOUR, *events, policy="ampere"))
    assert by_level == smids(run(FOUR, *events, policy="algorithm1"))


def test_block_that_leaves_its_sm_as_roomy_as_before_is_followed_by_another_there() -> None:
    # SM 0 has gaps of 20, 20 and 20 KB, so the first two blocks cost it no room.
    one = gpu(2, sms_per_tpc=1, shared_memory_configurations=(100 * KB,))
    events = [*TENTHS, *TENTHS, *released(0, 2, 6, 8, 12, 14), launch(6, shared_memory=19 * KB)]
    by_level = smids(run(one, *events, policy="ampere"))
    assert by_level == smids(run(one, *events, policy="algorithm1"))
