"""How the scripts that ask the GPU score its answers."""

from __future__ import annotations

import pytest

from gpu.oracles.scores import Issued, choices, same_partition


@pytest.mark.parametrize(
    ("first", "second", "agreed"),
    [
        ([0, 1, 0, 1], [5, 3, 5, 3], 4),
        ([0, 1, 0, 1], [5, 5, 5, 5], 2),  # one name for one number only
        ([0, 0, 0, 1], [5, 3, 3, 3], 2),
        ([], [], 0),
    ],
)
def test_partitions_agree_up_to_names(first: list[int], second: list[int], agreed: int) -> None:
    assert same_partition(first, second) == agreed


def test_rule_takes_the_queue_used_longest_ago_of_those_that_are_empty() -> None:
    launches = [
        Issued(0, 0, 100, 7),  # never used: any
        Issued(1, 10, 12, 8),
        Issued(0, 20, 110, 7),  # keeps its own
        Issued(2, 30, 32, 8),  # 7 is not empty
        Issued(1, 40, 120, 7),  # 8 is: wrong
        Issued(0, 50, 130, 8),  # its queue was taken: the empty one
    ]
    assert choices(launches, queues=2) == [True, True, True, True, False, True]


def test_rule_takes_the_one_used_longest_ago_where_none_is_empty() -> None:
    launches = [Issued(0, 0, 900, 7), Issued(1, 1, 900, 8), Issued(2, 2, 900, 7)]
    assert choices(launches, queues=2) == [True, True, True]
    assert choices([*launches[:2], Issued(2, 2, 900, 8)], queues=2) == [True, True, False]
    assert choices([*launches[:2], Issued(2, 2, 900, 8)], queues=2, lead_ns=900)[-1] is False
