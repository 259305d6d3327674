"""Which TPC of no GPC a cluster of 2 begins at, after launches of single blocks.

Each row was seen on an H200 (traces h200/spointer, mixlong, mixshort, clusters_long): where a
cluster of 2 would have begun, a launch of single blocks, and where a cluster of 2 began after it.
"""

from __future__ import annotations

import pytest

from helpers import launch
from tbsched.hardware.catalogue import device
from tbsched.hardware.initial_state import InitialState
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Release, Sequence

H200 = device("h200")
FOUR_PAIRS = Launch(8, 32, 16, carveout=100, cluster=2)  # one on each of the four TPCs


def begins_at(before: int, *singles: Launch | Release) -> int:
    state = InitialState(first_singleton=(before + 2) % 4)
    releases = [Release(k) for k in range(len(singles)) if isinstance(singles[k], Launch)]
    trace = predict(Sequence([*singles, *releases, FOUR_PAIRS]), H200, initial_state=state)
    row = (trace[-1].smid[::2] - 124) // 2
    assert [int(tpc) for tpc in row] == [(int(row[0]) + step) % 4 for step in range(4)]
    return int(row[0])


@pytest.mark.parametrize("before", range(4))
def test_clusters_of_two_begin_where_the_last_ones_ended(before: int) -> None:
    assert begins_at(before) == before
    three = Launch(6, 32, 16, carveout=100, cluster=2)
    # The first three TPCs take them; the turn goes on after the last of them that was asked.
    assert begins_at(before, three) == {0: 3, 1: 1, 2: 2, 3: 3}[before]


@pytest.mark.parametrize(
    ("blocks", "after"),
    [
        (132, {0: 1, 1: 0, 2: 3, 3: 2}),  # a level on all four TPCs
        (4, {0: 1, 1: 0, 2: 3, 3: 2}),  # a block on each
        (264, {0: 1, 1: 3, 2: 3, 3: 1}),  # a second level
        (3, {1: 3, 2: 3}),  # on the first three
        (2, {0: 2, 1: 1, 2: 2}),  # on the first two, a pair
        (1, {0: 1, 1: 1, 3: 1}),  # on the first
        (133, {0: 1, 1: 1}),  # a level, and a block on the first
    ],
)
def test_single_blocks_leave_the_turn_at(blocks: int, after: dict[int, int]) -> None:
    for before, where in after.items():
        assert begins_at(before, launch(blocks)) == where, before


def test_pair_that_begins_depends_on_the_turn() -> None:
    first = {}
    for before in range(4):
        state = InitialState(first_singleton=(before + 2) % 4)
        first[before] = int(predict(Sequence([launch(132)]), H200, initial_state=state)[0].smid[0])
    assert first == {0: 128, 1: 124, 2: 124, 3: 128}
