"""Green context splits, and what fits them, as the drivers of an H200 and of an H100 answered."""

from __future__ import annotations

import dataclasses
import json
import lzma
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from contract.random_devices.specs import specs
from helpers import ROOT, gpu
from tbsched.prediction.tables import allowed_at_once
from tbsched.program.event_table import LAUNCH, EventTable

# The driver's flags, as keywords.
FLAGS: dict[int, dict[str, bool]] = {
    0: {},
    1: {"ignore_coscheduling": True},
    2: {"max_cluster": True},
    3: {"ignore_coscheduling": True, "max_cluster": True},
}


# The driver allows one cluster of 3 and one of 4 more in each half of the GPU, split so. Why is not
# known: elsewhere the first of neighbouring pieces is a part by itself.
HALVES = tb.SmSplit(66, ignore_coscheduling=True)


def answers(board: str) -> Iterator[dict[str, Any]]:
    path = ROOT / "tests" / "traces" / "partitions" / f"{board}.jsonl.xz"
    with lzma.open(path, "rt") as file:
        next(file)  # the header
        yield from map(json.loads, file)


def unknown() -> tb.DeviceSpec:
    return dataclasses.replace(tb.device("h200"), coscheduled_sms=0)


def tpcs(partition: tb.Partition) -> list[int]:
    even = partition.sms[::2]
    assert partition.sms[1::2] == tuple(sm + 1 for sm in even)
    return [sm // 2 for sm in even]


@pytest.mark.parametrize("board", ["h200", "h100"])
def test_every_split_is_the_driver_s(board: str) -> None:
    splits = refused = 0
    for row in answers(board):
        for min_sms in range(row["min"][0], row["min"][1] + 1):
            if "error" in row:
                with pytest.raises(ValueError, match="split_sms"):
                    tb.split_sms(board, min_sms, **FLAGS[row["flags"]])  # type: ignore[arg-type]
                refused += 1
                continue
            groups, rest = tb.split_sms(board, min_sms, groups=row["groups"], **FLAGS[row["flags"]])  # type: ignore[misc]
            assert [tpcs(group) for group in groups] == row["tpcs"], row
            assert tpcs(rest) == row["rest"], row
            splits += 1
    assert splits == 1871
    assert refused == 141


def cooperative_launches(board: str) -> Iterator[tuple[tb.Launch, int]]:
    """Launches of one cluster, and how many blocks of each kernel the driver allows at once."""
    spec = tb.device(board)
    splits: dict[tb.SmSplit, tuple[tuple[tb.Partition, ...], tb.Partition]] = {}
    for row in answers(f"cooperative-{board}"):
        group, allowed = row.pop("group", None), row.pop("allowed")
        partition = None
        if (asked := row.pop("split", None)) is not None:
            split = tb.SmSplit(**asked)
            if split not in splits:
                splits[split] = tb.split_sms(spec, **asked)
            groups, rest = splits[split]
            partition = rest if group is None else groups[group]
        yield tb.Launch(row["cluster"], partition=partition, cooperative=True, **row), allowed


@pytest.mark.parametrize(
    ("board", "rows", "too_few"),
    [("h200", 15_760, {3: 6, 4: 4}), ("h100", 28_718, {3: 4, 4: 6})],
)
def test_as_many_blocks_are_allowed_at_once_as_the_driver_allows(
    board: str, rows: int, too_few: dict[int, int]
) -> None:
    spec = tb.device(board)
    found = [*cooperative_launches(board)]
    assert len(found) == rows
    some = [(launch, allowed) for launch, allowed in found if allowed]
    partitions = tuple({launch.partition: None for launch, _ in some if launch.partition})
    number = {partition: index for index, partition in enumerate(partitions)}
    cells = [
        (LAUNCH, one.blocks, one.threads, one.registers, one.shared_memory, 0,
         -1 if one.carveout is None else one.carveout, one.cluster, 0,
         -1 if one.partition is None else number[one.partition], 1)
        for one, _ in some
    ]  # fmt: skip
    bounds = np.arange(len(cells) + 1)
    counted = allowed_at_once(EventTable(np.array(cells, np.int32), bounds, partitions), spec)
    wrong = [
        launch for (launch, allowed), count in zip(some, counted, strict=True) if count != allowed
    ]
    assert all(one.partition and one.partition.split == HALVES for one in wrong)
    assert Counter(one.cluster for one in wrong) == too_few
    for launch, allowed in found[::9]:
        if allowed == 0:
            with pytest.raises(ValueError, match=r"takes up to|holds|one block is more than"):
                tb.predict(tb.Sequence([launch]), spec)


def test_a_cluster_is_in_one_part_of_a_partition() -> None:
    # Four TPCs of a GPC in pieces of one: the first is a part, the others are another one.
    groups, _ = tb.split_sms("h200", 40, groups=1, ignore_coscheduling=True)
    gpcs = tb.device("h200").gpcs
    inside = {sm // 2 for sm in groups[0].sms}
    assert sorted(len(inside & {*gpc}) for gpc in gpcs) == [2] * 8
    for sms, largest in ((40, 2), (46, 4), (60, 6), (90, 10)):
        groups, _ = tb.split_sms("h200", sms, groups=1, ignore_coscheduling=True)
        launch = tb.Launch(largest, 32, 32, cluster=largest, partition=groups[0])
        assert tb.predict(tb.Sequence([launch]), "h200")[0].placed == largest
        for more in range(largest + 1, 17):
            larger = dataclasses.replace(launch, blocks=more, cluster=more)
            with pytest.raises(ValueError, match=f"takes up to {largest} blocks; got {more}"):
                tb.predict(tb.Sequence([larger]), "h200")


def test_partition_that_no_driver_makes_of_the_device_has_the_clusters_of_its_split() -> None:
    groups, _ = tb.split_sms("h200", 40, groups=1, ignore_coscheduling=True)
    for split, largest in (
        (tb.SmSplit(60, groups=1, ignore_coscheduling=True), 2),
        (tb.SmSplit(60, groups=1), 4),
        (tb.SmSplit(60, groups=1, ignore_coscheduling=True, max_cluster=True), 4),
    ):
        partition = tb.Partition(groups[0].sms, split=split, group=0)
        for cluster in range(2, 8):
            sequence = tb.Sequence(
                [tb.Launch(cluster, 32, 32, cluster=cluster, partition=partition)]
            )
            if cluster <= largest:
                assert tb.predict(sequence, "h200")[0].placed == cluster
            else:
                with pytest.raises(ValueError, match="takes up to"):
                    tb.predict(sequence, "h200")


def test_no_more_blocks_are_sure_than_the_driver_allows_at_once() -> None:
    groups, _ = tb.split_sms("h200", 25)
    launch = tb.Launch(3, 1024, 64, cluster=3, partition=groups[3], cooperative=True)
    assert tb.capacity(launch, "h200").blocks == 24
    assert tb.budget(launch, "h200") == 21
    with pytest.raises(ValueError, match="holds 21; got 24"):
        tb.predict(tb.Sequence([dataclasses.replace(launch, blocks=24)]), "h200")


@settings(deadline=None, derandomize=True, max_examples=60)
@given(specs(), st.integers(0, 40), st.none() | st.integers(1, 9), st.sampled_from([0, 1, 2]))
def test_every_sm_is_in_one_group_or_left_over(
    spec: tb.DeviceSpec, min_sms: int, groups: int | None, flags: int
) -> None:
    min_sms = min(min_sms, spec.sms)
    if not spec.gpcs or not spec.coscheduled_sms:
        return
    found, rest = tb.split_sms(spec, min_sms, groups=groups, **FLAGS[flags])
    assert len(found) <= (spec.sms if groups is None else groups)
    every = sorted(sm for part in (*found, rest) for sm in part.sms)
    assert every == list(range(spec.sms))
    if spec.sms % spec.sms_per_tpc == 0:
        assert all(len(group) == len(found[0]) >= min_sms for group in found)


def test_split_without_a_number_of_groups_makes_as_many_as_there_can_be() -> None:
    groups, rest = tb.split_sms("h200", 9)
    assert [len(group) for group in groups] == [16] * 8
    assert rest.sms == (120, 121, 122, 123)
    more, left = tb.split_sms("h200", 9, groups=99)
    assert [group.sms for group in more] == [group.sms for group in groups]
    assert left.sms == rest.sms
    assert not tb.split_sms("h200", 132)[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"min_sms": 133}, r"split_sms.min_sms: 133 is outside 0..132"),
        ({"min_sms": 8, "groups": 0}, r"split_sms.groups: 0 is outside 1"),
        ({"min_sms": 8, "max_cluster": True, "ignore_coscheduling": True}, "exclude each other"),
        ({"min_sms": 8, "device": "rtx3090"}, "which TPCs are in which GPC"),
        ({"min_sms": 1, "device": gpu(base="h200")}, "which TPCs are in which GPC"),
        ({"min_sms": 8, "device": unknown()}, r"how many SMs are coscheduled \(coscheduled_sms\)"),
    ],
)
def test_split_that_makes_no_sense_is_refused(arguments: dict[str, Any], words: str) -> None:
    given = {"device": "h200", **arguments}
    with pytest.raises(ValueError, match=words):
        tb.split_sms(**given)


@pytest.mark.parametrize("name", ["h200", "h100"])
def test_counts_by_the_documentation_bound_the_split_by_the_map(name: str) -> None:
    exact = 0
    for min_sms in range(133):
        counts = tb.split_counts(name, min_sms)
        groups, _ = tb.split_sms(name, min_sms)
        assert {len(group) for group in groups} <= {counts.sms}
        assert len(groups) <= counts.most_groups
        exact += len(groups) == counts.most_groups
    assert exact > 100


@pytest.mark.parametrize(
    ("capability", "min_sms", "expected"),
    [
        ("8.9", 15, (16, 8, 14)),
        ("7.5", 1, (2, 71, 0)),
        ("6.1", 3, (4, 35, 2)),
        ("12.0", 0, (8, 17, 6)),
    ],
)
def test_counts_of_any_gpu(capability: str, min_sms: int, expected: tuple[int, int, int]) -> None:
    spec = gpu(sms=142, compute_capability=capability)
    counts = tb.split_counts(spec, min_sms)
    assert (counts.sms, counts.most_groups, counts.least_rest) == expected
    assert tb.split_counts(spec, min_sms, groups=2).most_groups == 2


def test_counts_refuse_what_no_gpu_has() -> None:
    with pytest.raises(ValueError, match=r"split_counts\.device: .* compute capability 5\.2"):
        tb.split_counts(gpu(sms=16, compute_capability="5.2"), 2)
    with pytest.raises(ValueError, match=r"split_counts\.min_sms: 17 is outside 0\.\.16"):
        tb.split_counts(gpu(sms=16, compute_capability="9.0"), 17)
    assert tb.split_counts(gpu(sms=7, compute_capability="9.0"), 7).sms == 7


def test_clients_of_mps_have_as_many_sms_as_an_h200_gave_them() -> None:
    path = ROOT / "tests" / "traces" / "processes" / "mps-percentages-h200.jsonl.xz"
    seen: dict[int, int] = {}
    with lzma.open(path, "rt") as file:
        next(file)  # the header
        for row in map(json.loads, file):
            if row["kind"] == "single" and row["percentage"] is not None:
                seen[row["percentage"]] = row["info"]["sms"]
    assert len(seen) > 15
    assert {share: tb.mps_sms("h200", share) for share in seen} == seen


def test_mps_gives_whole_tpcs_and_some_at_least() -> None:
    assert [tb.mps_sms("h100", share) for share in (1, 6, 7, 100)] == [8, 8, 8, 132]
    assert tb.mps_sms("v100", 1) == 2
    for share in (0, 101):
        with pytest.raises(ValueError, match=r"mps_sms\.percentage"):
            tb.mps_sms("h200", share)
    with pytest.raises(ValueError, match=r"mps_sms\.device: tx2 .* need 7\.0"):
        tb.mps_sms("tx2", 50)
