"""Sequences shrink until no event and no number can be taken from them."""

from __future__ import annotations

import pytest

from helpers import launch
from tbsched.campaigns.shrinking.minimise import Floors, minimise, size, without_launch
from tbsched.program.sequence import Launch, Release, Sequence

FLOORS = Floors(registers=32, carveout=100, local_memory=0, priority=0)
LARGE = Sequence(
    [
        Launch(300, 512, 64, 4096, carveout=50),
        Launch(20, 256, 128, 1000, local_memory=4096, priority=-1),
        Release(0),
        Launch(64, 96, 255, cluster=8),
        Release(1),
        Launch(5, 1024, 32),
    ]
)


def test_without_a_launch_its_release_goes_and_later_ones_are_renumbered() -> None:
    assert without_launch(LARGE, 0) == Sequence([LARGE[1], LARGE[3], Release(0), LARGE[5]])
    assert without_launch(LARGE, 3) == LARGE[:5]


def test_anything_shrinks_to_the_floors() -> None:
    assert minimise(LARGE, lambda _: True, FLOORS) == Sequence([Launch(1, 1, 32, carveout=100)])


def test_what_does_not_fail_smaller_stays() -> None:
    assert minimise(LARGE, lambda candidate: candidate == LARGE, FLOORS) == LARGE


@pytest.mark.parametrize(
    ("field", "bound"), [("blocks", 17), ("threads", 33), ("registers", 100), ("shared_memory", 7)]
)
def test_numbers_stop_at_the_last_that_fails(field: str, bound: int) -> None:
    def fails(candidate: Sequence) -> bool:
        return any(getattr(launch, field) >= bound for launch in candidate.launches)

    (smallest,) = minimise(LARGE, fails, FLOORS).launches
    assert getattr(smallest, field) == bound


def test_a_release_that_matters_stays() -> None:
    def fails(candidate: Sequence) -> bool:
        return any(isinstance(event, Release) for event in candidate)

    found = minimise(LARGE, fails, FLOORS)
    assert len(found.launches) == 1
    assert len(found) == 2


def test_two_launches_become_one_that_has_the_blocks_of_both() -> None:
    def fails(candidate: Sequence) -> bool:
        return sum(each.blocks for each in candidate.launches) >= 30

    (only,) = minimise(Sequence([launch(15), launch(15, warps=2)]), fails, FLOORS).launches
    assert only.blocks == 30


def test_blocks_stay_a_multiple_of_a_cluster_that_matters() -> None:
    def fails(candidate: Sequence) -> bool:
        return any(each.cluster == 8 and each.blocks >= 20 for each in candidate.launches)

    (only,) = minimise(LARGE, fails, FLOORS).launches
    assert (only.cluster, only.blocks) == (8, 24)


def test_fewer_launches_are_smaller_than_fewer_blocks() -> None:
    assert size(Sequence([launch(1000)])) < size(Sequence([launch(1), launch(1)]))
