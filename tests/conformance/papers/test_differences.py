"""The thesis's summary tables of start and end differences, of predictions and of recordings."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tbsched as tb
from conformance.papers.differences import (
    GROUPS,
    RECORDED,
    differences,
    group,
    recorded,
    summary,
)

LAUNCH = tb.Launch(28, 256, 52, duration=1e-4)


def later(trace: tb.Trace, blocks: dict[int, tuple[int, int]]) -> tb.Trace:
    """The trace with the first launch's blocks that start and end so many nanoseconds later."""
    (first, *others) = trace.placements
    start, end = (np.array(times) for times in (first.start_ns, first.end_ns))
    for block, (start_ns, end_ns) in blocks.items():
        start[block] += start_ns
        end[block] += end_ns
    changed = dataclasses.replace(first, start_ns=start, end_ns=end)
    return dataclasses.replace(trace, placements=(changed, *others))


def predicted(*launches: tb.Launch, policy: str | None = None) -> tb.Trace:
    return tb.predict(tb.Sequence(launches), "c2070", policy)


def test_a_table_has_the_greatest_and_the_least_of_three_quantities() -> None:
    one = differences(later(predicted(LAUNCH), {0: (70, 200), 27: (30, -5)}))
    other = differences(later(predicted(LAUNCH), {3: (10, 10)}))
    rows = [(row.quantity, row.ns) for row in summary([*one, *other])]
    assert rows == [
        ("greatest end less start", 135), ("greatest end", 205), ("greatest start", 70),
        ("least end less start", 0), ("least end", 10), ("least start", 10),
    ]  # fmt: skip


@pytest.mark.parametrize(("policy", "even"), [("first_fit", False), ("round_robin", True)])
def test_groups_tell_an_even_spread_from_others(policy: str, even: bool) -> None:
    """The thesis has a table of each."""
    small = dataclasses.replace(LAUNCH, threads=32, registers=16)
    found = list(differences(predicted(small, policy=policy)))
    assert [len(group(found, name)) for name in GROUPS] == [1, int(even), int(not even)]
    assert summary(group(found, "uneven" if even else "even")) == []


@pytest.mark.parametrize(
    "launches",
    [
        (dataclasses.replace(LAUNCH, blocks=27),),
        (dataclasses.replace(LAUNCH, blocks=14 * 40),),
        (dataclasses.replace(LAUNCH, blocks=14), dataclasses.replace(LAUNCH, blocks=14)),
        (dataclasses.replace(LAUNCH, duration=(1e-5,) * 27 + (1e-4,)),),
    ],
    ids=["no whole number per SM", "two waves", "two at once", "blocks that differ"],
)
def test_other_launches_do_not_count(launches: tuple[tb.Launch, ...]) -> None:
    own_streams = [dataclasses.replace(one, stream=k) for k, one in enumerate(launches)]
    assert list(differences(predicted(*own_streams))) == []


@pytest.mark.parametrize("gpu", [*RECORDED])
def test_on_hopper_blocks_start_and_end_within_a_microsecond(gpu: str) -> None:
    """The thesis has millions of clocks. No launch alone on the GPU spreads unevenly."""
    launches = [one for one, _ in recorded(gpu)]
    assert len(launches) > 250
    assert group(launches, "uneven") == []
    assert 60 <= min(one.start for one in launches) < max(one.start for one in launches) < 600
    assert max(one.end for one in launches) < 600
    assert max(one.both for one in launches) < 250


@pytest.mark.parametrize("gpu", [*RECORDED])
def test_the_model_starts_all_blocks_at_once(gpu: str) -> None:
    assert {(model.start, model.end) for _, model in recorded(gpu)} == {(0, 0)}
