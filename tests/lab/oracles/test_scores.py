"""How the scripts that ask the GPU score its answers."""

from __future__ import annotations

import pytest

from lab.oracles.scores import Issued, choices, same_partition


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


def test_rule_takes_an_empty_queue_of_the_other_parity() -> None:
    launches = [
        Issued(0, 0, 100, 1),  # queue 0 is the driver's
        Issued(1, 10, 12, 2),  # never used, even
        Issued(0, 20, 110, 1),  # keeps its own
        Issued(2, 30, 130, 0),  # even, used longest ago
        Issued(3, 40, 140, 3),
        Issued(1, 50, 52, 2),  # keeps its own
        Issued(4, 60, 160, 2),  # 0, 1 and 3 are not empty
        Issued(5, 170, 180, 1),  # all are: odd, used longest ago
        Issued(0, 190, 200, 3),  # wrong: 1 was odd
    ]
    assert choices(launches, queues=4) == [True] * 8 + [False]


def test_rule_takes_the_one_used_longest_ago_where_none_is_empty() -> None:
    launches = [Issued(0, 0, 900, 1), Issued(1, 1, 900, 0), Issued(2, 2, 900, 1)]
    assert choices(launches, queues=2) == [True, True, True]
    assert choices([*launches[:2], Issued(2, 2, 900, 0)], queues=2) == [True, True, False]
    # Had they left their queues by then, the parity would tell.
    assert choices([*launches, Issued(0, 3, 900, 1)], queues=2, lead_ns=900)[-1] is False
