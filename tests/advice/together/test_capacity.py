"""How many blocks fit beside others, and what binds each class of SMs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from advice.together.puzzles import COMMUNICATION, GEMM, SCHEDULERS, WORKERS
from contract.sequences import choices, launches
from helpers import examples, gpu, launch

H200 = tb.device("h200")


def test_clusters_that_fit_are_said_to_depend_on_the_board() -> None:
    for cluster, depends in ((1, False), (2, True), (16, True)):
        found = tb.capacity(tb.Launch(160, 64, 16, cluster=cluster), "h200")
        assert ("the map of GPCs of h200" in str(found)) is depends
        assert ("the map of GPCs of h200" in found._repr_html_()) is depends


def test_meeting_blocks_are_counted_like_others() -> None:
    met = replace(GEMM, meets="all", duration=1e-5)
    assert tb.capacity(met, "h200").blocks == tb.capacity(GEMM, "h200").blocks
    assert tb.budget(met, "h200") == tb.budget(GEMM, "h200")


def test_workers_beside_schedulers() -> None:
    found = tb.capacity(WORKERS, "h200", beside=[SCHEDULERS])
    assert (found.blocks, found.clusters, found.fits, found.idle_sms) == (116, 116, False, ())
    assert {(row.cause, len(row.sms), row.blocks, row.beside) for row in found.limits} == {
        ("registers", 116, 1, 0),
        ("configuration", 16, 0, 1),
    }
    placed = tb.predict(tb.Sequence([SCHEDULERS, WORKERS]), "h200")[1]
    assert found.smid.tolist() == placed.smid[:116].tolist()


def test_sms_that_no_whole_cluster_reaches() -> None:
    found = tb.capacity(GEMM, "h200")
    assert (found.blocks, found.clusters, len(found.idle_sms)) == (120, 30, 12)
    idle = {row.cause: row.sms for row in found.limits}["cluster"]
    assert idle == found.idle_sms
    assert tb.capacity(replace(GEMM, blocks=132, cluster=2), "h200").blocks == 132
    assert tb.capacity(GEMM, "h200", beside=[COMMUNICATION]).blocks == 96


def test_own_number_of_blocks_does_not_matter() -> None:
    few, many = (tb.capacity(replace(WORKERS, blocks=n), "h200") for n in (1, 10**6))
    assert few.smid.tolist() == many.smid.tolist()
    assert (few.fits, many.fits) == (True, False)
    together = replace(WORKERS, cooperative=True)
    assert tb.capacity(together, "h200").smid.tolist() == few.smid.tolist()


def test_partition() -> None:
    (group, _), rest = tb.split_sms("h200", 64)
    found = tb.capacity(WORKERS, "h200", partition=group)
    assert (found.blocks, found.launch.partition) == (64, group)
    outside = {row.cause: row.sms for row in found.limits}["partition"]
    assert len(outside) == 68
    assert set(rest.sms) <= set(outside)


def test_state_decides_where() -> None:
    one = launch(8)
    first, other = (
        tb.capacity(one, "h200", state=tb.InitialState(first_gpc=gpc)) for gpc in (0, 3)
    )
    assert first.blocks == other.blocks
    assert first.smid.tolist() != other.smid.tolist()


def test_durations_do_not_matter() -> None:
    timed = replace(WORKERS, stream=0, duration=1e-3, first_use=True)
    beside = replace(SCHEDULERS, stream=tb.LEGACY_STREAM, duration=(1e-3,) * 16)
    assert tb.capacity(timed, "h200", beside=[beside]).blocks == 116
    assert tb.capacity(WORKERS, "h200", beside=tb.Sequence([SCHEDULERS])).blocks == 116


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"beside": [replace(WORKERS, blocks=133)]}, r"1 of 133 blocks of workers .*registers"),
        ({"beside": [replace(WORKERS, blocks=2**31 - 1)]}, "blocks: 2147483647 in all are more"),
        ({"beside": [3]}, r"capacity\.beside\[0\]: a Launch is needed, got 3"),
        ({"partition": 3}, r"capacity\.partition: a Partition is needed"),
        ({"policy": "none"}, "none"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        tb.capacity(WORKERS, "h200", **given)  # type: ignore[arg-type]


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_capacity_is_what_a_prediction_places(data: st.DataObject) -> None:
    """A grid of so many blocks is placed just there, and another cluster finds no room."""
    spec = data.draw(st.sampled_from([H200, gpu(4), gpu(6, "h200", gpcs=((0,), (1,)))]))
    offered = data.draw(choices(spec, plain=False, clusters=spec.max_cluster > 1))
    *beside, one = (
        replace(data.draw(launches(spec, offered)), stream=None, priority=0) for _ in range(3)
    )
    trace = tb.predict(tb.Sequence(beside), spec)
    beside = [row for row, at in zip(beside, trace, strict=True) if (at.smid >= 0).all()]
    if any((at.smid < 0).any() for at in tb.predict(tb.Sequence(beside), spec)):
        return
    found = tb.capacity(one, spec, beside=beside)
    assert found.per_sm.sum() == found.blocks == found.clusters * one.cluster
    assert sorted(sm for row in found.limits for sm in row.sms) == list(range(spec.sms))
    for row in found.limits:
        assert set(found.per_sm[list(row.sms)]) == {row.blocks}
        assert set(found.beside_per_sm[list(row.sms)]) == {row.beside}
    more = replace(one, blocks=found.blocks + one.cluster)
    placed = tb.predict(tb.Sequence([*beside, more]), spec)[-1].smid
    assert np.array_equal(placed[: found.blocks], found.smid)
    assert (placed[found.blocks :] < 0).all()


def test_choices() -> None:
    table = tb.capacities(
        GEMM, "h200", clusters=[1, 2, 4, 16], carveouts=[None, 0], beside=[COMMUNICATION]
    )
    assert len(table) == 8
    assert [row.blocks for row in table] == sorted((row.blocks for row in table), reverse=True)
    for row in table:
        assert row.blocks == tb.capacity(row.launch, "h200", beside=[COMMUNICATION]).blocks
        assert (row.clusters, row.threads) == (row.blocks // row.launch.cluster, 384 * row.blocks)


def test_choices_of_a_launch_that_has_a_duration_for_each_block() -> None:
    timed = replace(WORKERS, duration=(1e-6,) * WORKERS.blocks)
    table = tb.capacities(timed, "h200", threads=[128, 256])
    own = tb.capacities(WORKERS, "h200", threads=[128, 256])
    assert [row.blocks for row in table] == [row.blocks for row in own]


def test_choice_that_the_device_refuses_says_why() -> None:
    table = tb.capacities(tb.Launch(1, 256, 128), "h200", threads=[256, 1024])
    fits, refused = table
    assert (fits.launch.threads, fits.refused) == (256, None)
    assert (refused.launch.threads, refused.blocks) == (1024, 0)
    assert refused.refused is not None
    assert "registers" in refused.refused
    with pytest.raises(ValueError, match=r"capacities\.threads: 0 is outside 1\.\.1024"):
        tb.capacities(WORKERS, "h200", threads=[0])


def test_driver_limits_cooperative_launches() -> None:
    grid = tb.Launch(1056, 128, 32, carveout=0, cooperative=True)
    found = tb.capacity(grid, "h200")
    assert (found.blocks, found.driver_limit, found.fits) == (2112, 1056, True)
    assert not tb.capacity(replace(grid, blocks=1057), "h200").fits
    assert "refuses cooperative launches of more than 1,056" in str(found)
    plain, whole = tb.capacities(grid, "h200", carveouts=[100, 0])
    assert (plain.blocks, whole.blocks, whole.limiter) == (2112, 1056, "driver_limit")
    assert tb.capacity(replace(grid, cooperative=False), "h200").driver_limit is None


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_largest_cooperative_launch_is_predicted_and_no_larger_one(data: st.DataObject) -> None:
    offered = data.draw(choices(H200, plain=False, clusters=True))
    one = replace(data.draw(launches(H200, offered)), stream=None, priority=0, cooperative=True)
    limit = tb.capacity(one, "h200").driver_limit
    assert limit is not None
    blocks = limit // one.cluster * one.cluster
    if blocks:
        (placed,) = tb.predict(tb.Sequence([replace(one, blocks=blocks)]), "h200")
        assert (placed.smid >= 0).all()
    with pytest.raises(ValueError, match="cooperative"):
        tb.predict(tb.Sequence([replace(one, blocks=blocks + one.cluster)]), "h200")
