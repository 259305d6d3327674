"""Partitions: what they may be, and how they are printed and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tbsched.hardware.partitions import split_sms
from tbsched.program.events.kinds import event_from_data, event_to_data
from tbsched.program.partition import Partition, SmSplit
from tbsched.program.sequence import Launch


def test_split_says_how_the_driver_makes_each_group_and_the_rest() -> None:
    groups, rest = split_sms("h200", 24, groups=3, max_cluster=True)
    split = SmSplit(24, groups=3, max_cluster=True)
    assert [(group.split, group.group) for group in groups] == [(split, k) for k in range(3)]
    assert (rest.split, rest.group) == (split, None)


def test_partition_is_as_long_as_it_has_sms() -> None:
    assert len(Partition((3, 5, 9))) == 3
    assert not Partition(())


@pytest.mark.parametrize(
    ("sms", "message"),
    [
        ((0, 2, 2), r"Partition\.sms: 2 after 2, they must ascend"),
        ((4, 3), r"Partition\.sms: 3 after 4"),
        ((-1,), r"Partition\.sms\[0\]: -1 is outside 0\.\.65535"),
        ((0, 65536), r"Partition\.sms\[1\]: 65536 is outside"),
    ],
)
def test_sms_ascend_from_0(sms: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Partition(sms)


def test_number_in_an_array_is_no_list_of_sms() -> None:
    with pytest.raises(TypeError, match=r"Partition\.sms: a list is needed, got array"):
        Partition(np.array(3))  # type: ignore[arg-type]


def test_group_is_of_a_split() -> None:
    with pytest.raises(ValueError, match=r"Partition\.group: 1 needs Partition\.split, got None"):
        Partition((0,), group=1)
    with pytest.raises(TypeError, match=r"Partition\.split: a SmSplit is needed, got 64"):
        Partition((0,), split=64)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_sms": -1}, r"SmSplit\.min_sms: -1 is outside 0\.\.65535"),
        ({"groups": 0}, r"SmSplit\.groups: 0 is outside 1\.\.2147483647"),
        ({"max_cluster": 1}, r"SmSplit\.max_cluster: True or False is needed, got 1"),
        ({"ignore_coscheduling": None}, r"SmSplit\.ignore_coscheduling: True or False is needed"),
    ],
)
def test_split_is_what_a_driver_can_be_asked_for(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        SmSplit(**{"min_sms": 8, **given})


@pytest.mark.parametrize(
    ("partition", "source", "data"),
    [
        (Partition((0, 1)), "Partition(sms=(0, 1))", {"sms": (0, 1)}),
        (
            Partition((4,), split=SmSplit(2, ignore_coscheduling=True), group=1),
            "Partition(sms=(4,), split=SmSplit(min_sms=2, ignore_coscheduling=True), group=1)",
            {"sms": (4,), "split": {"min_sms": 2, "ignore_coscheduling": True}, "group": 1},
        ),
    ],
)
def test_partition_is_printed_and_written_without_defaults(
    partition: Partition, source: str, data: dict[str, Any]
) -> None:
    assert repr(partition) == source
    launch = Launch(1, 32, 16, partition=partition)
    written: Any = event_to_data(launch)
    assert written["launch"]["partition"] == data
    assert event_from_data("here", written) == launch


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0, 1], r"here\.launch\.partition: an object is needed, got \[0, 1\]"),
        ({}, r"here\.launch\.partition: sms is missing"),
        ({"sms": [0], "sm": 1}, r"partition: 'sm' is unknown; .*did you mean 'sms'"),
        ({"sms": [0], "split": {}}, r"partition\.split: min_sms is missing"),
        ({"sms": [0], "split": {"min_sms": 2, "x": 1}}, r"partition\.split: 'x' is unknown"),
    ],
)
def test_what_a_file_has_as_partition_is_refused_by_its_place(given: Any, message: str) -> None:
    launch = {"blocks": 1, "threads": 1, "registers": 1, "partition": given}
    with pytest.raises((ValueError, TypeError), match=message):
        event_from_data("here", {"launch": launch})
