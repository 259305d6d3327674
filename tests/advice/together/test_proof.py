"""What the proofs must not overlook: groups that they would call safe without a condition.

Every group here is stranded only after blocks of an outsider have left, which the proofs are to
spare playing.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import tbsched as tb
from helpers import gpu, launch

FIRST, SECOND = tb.Partition((0,)), tb.Partition((1,))
ONE_LINE = replace(gpu(2, "h200"), launch_order="one_line", provenance={})


def waiting_launch(partition: tb.Partition | None = None) -> list[tb.Launch]:
    """The last of them waits where the first one left before the second one configured the SM."""
    return [
        launch(1, carveout=100, partition=partition),
        launch(1, partition=partition),
        launch(1, shared_memory=102_400, partition=partition),
    ]


@pytest.mark.parametrize(
    ("spec", "launches"),
    [
        (gpu(1, "h200"), [*waiting_launch(), launch()]),
        (ONE_LINE, [*waiting_launch(FIRST), launch(partition=SECOND)]),
        (gpu(2, "h200"), [*waiting_launch(FIRST), launch(36)]),
        (gpu(2, "h200"), [*waiting_launch(FIRST), launch(6, 8), launch(1, 32, partition=SECOND)]),
    ],
    ids=[
        "it holds up what comes",
        "on other SMs, too",
        "the SMs that are left are not enough",
        "the next one crowds the SMs that are left",
    ],
)
def test_launch_that_waits_once_an_outsider_has_left(
    spec: tb.DeviceSpec, launches: list[tb.Launch]
) -> None:
    last = len(launches) - 1
    found = tb.coresident(launches, spec, groups=[[last]], after=[(0, 1)], fixes=False)
    assert (found.safe, found.stranded) == (False, last)
