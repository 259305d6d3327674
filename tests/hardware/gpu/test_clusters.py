"""Thread block clusters on an H200: which SMs take one, in which order, and what refuses one.

An H200 has GPCs of 8, 16 (five) and 18 (two) SMs, and four TPCs of no GPC, SMs 124 to 131.
"""

from __future__ import annotations

from typing import Any

import pytest

from helpers import final, fits, gpu, launch, run, smids
from tbsched.hardware.catalogue import device
from tbsched.prediction.predict import predict
from tbsched.program.partition import Partition
from tbsched.program.sequence import Launch, Release, Sequence

H200 = device("h200")
POLICIES = ("round_robin", "first_fit", "most_room", "algorithm1", "ampere")


def sms_of_gpc(gpc: int) -> list[int]:
    return [sm for tpc in H200.gpcs[gpc] for sm in (2 * tpc, 2 * tpc + 1)]


def gpc_of(sm: int) -> int:
    return H200.gpc_of_tpc[sm // 2]


def clusters(count: int, size: int, **rest: Any) -> Launch:
    return launch(count * size, cluster=size, **rest)


def placed(*launches: Launch | Release) -> list[list[int]]:
    """The clusters of the last launch."""
    last = launches[-1]
    assert isinstance(last, Launch)
    row = smids(run(H200, *launches))[-1]
    return [row[i : i + last.cluster] for i in range(0, len(row), last.cluster)]


# -- where ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", range(3, 17))
def test_blocks_of_a_cluster_go_to_different_sms_of_one_gpc(size: int) -> None:
    for cluster in placed(clusters(30, size)):
        assert len(set(cluster)) == size
        assert len({gpc_of(sm) for sm in cluster}) == 1
        assert gpc_of(cluster[0]) >= 0


def test_clusters_of_two_take_the_tpcs_of_no_gpc_first() -> None:
    assert sorted(placed(clusters(4, 2))) == [[124, 125], [126, 127], [128, 129], [130, 131]]
    assert sorted(placed(clusters(5, 2)))[0] == [0, 1]
    assert placed(clusters(1, 3)) == [[0, 1, 16]]


@pytest.mark.parametrize(("size", "gpc"), [(8, 0), (9, 1), (16, 1)])
def test_a_gpc_too_small_for_a_cluster_is_passed_over(size: int, gpc: int) -> None:
    assert placed(clusters(1, size)) == [sms_of_gpc(gpc)[:size]]


def test_each_gpc_takes_one_before_any_takes_two() -> None:
    rows = placed(clusters(9, 4))
    assert [gpc_of(row[0]) for row in rows] == [0, 1, 2, 3, 4, 5, 6, 7, 0]
    assert rows[-1] == sms_of_gpc(0)[4:]


def test_the_odd_block_stays_beside_a_half_taken_tpc_and_counts_last() -> None:
    sms = sms_of_gpc(0)
    (*_, second) = placed(clusters(9, 3))
    assert second == [sms[4], sms[5], sms[3]]


def test_idle_sms_come_before_busy_ones_with_as_much_room() -> None:
    # Registers bind: three of the second kernel fit either way.
    sms = sms_of_gpc(1)
    assert placed(clusters(1, 6, warps=12, registers=48)) == [sms_of_gpc(0)[:6]]
    busy = [launch(24, registers=80), clusters(1, 6, warps=12, registers=48)]
    assert placed(*busy) == [sms[4:10]]


def test_where_an_sm_holds_one_block_idle_sms_and_whole_tpcs_are_not_sought() -> None:
    # On each SM of no GPC, and on the even SMs up to 16: in GPC 0 on 0 and 16.
    held = launch(17, warps=32)
    assert placed(held, clusters(1, 3, warps=16, registers=64)) == [[32, 33, 1]]
    one = clusters(1, 3, warps=16, registers=98)
    assert placed(held, one) == [[1, 17, 32]]


def test_larger_clusters_share_the_sms_of_no_gpc_in_a_partition_alone() -> None:
    one = {"shared_memory": 15361, "carveout": 14}  # 32 KB hold one, 64 KB three
    part = Partition((0, 1, 16, 17, 124, 125))
    assert placed(clusters(2, 4, partition=part, **one)) == [[0, 1, 16, 17], [124, 125, 124, 125]]
    assert placed(clusters(2, 4, partition=part)) == [[0, 1, 16, 17], [0, 1, 16, 17]]
    on_all = placed(clusters(99, 4, **one))
    assert {gpc_of(sm) for cluster in on_all for sm in cluster if sm >= 0} == set(range(8))


def test_clusters_on_an_sm_make_it_less_wanted_but_single_blocks_do_not() -> None:
    sms = sms_of_gpc(0)
    every = launch(132)  # so that no SM is idle
    assert placed(every, clusters(1, 4), clusters(1, 4)) == [sms[4:]]
    # Twelve blocks more: on the SMs of no GPC, and on 0, 2, 4 and 6. SM 0 is taken all the same.
    assert placed(every, launch(12), clusters(1, 4)) == [sms[:4]]


# -- what refuses one -----------------------------------------------------------------------------


def test_an_sm_holds_eight_blocks_of_clusters() -> None:
    eight = [clusters(8 * 7, 16), clusters(8 * 1, 8)]
    assert fits(H200, *eight)
    # GPCs 6 and 7 have one TPC more, whose SMs hold nothing yet.
    assert not fits(H200, clusters(8 * 7 + 3, 16))


def test_single_blocks_have_room_where_the_ninth_block_of_a_cluster_has_not() -> None:
    full = [clusters(8 * 66, 2)]
    assert fits(H200, *full)
    refused = run(H200, *full, clusters(1, 2))[-1]
    assert refused.placed == 0
    assert refused.limiter == "slots"
    assert fits(H200, *full, launch(132 * 24))
    assert not fits(H200, *full, launch(132 * 24 + 1))
    assert fits(H200, *full, Release(0), clusters(1, 2))


def test_a_cluster_is_placed_whole_or_not_at_all() -> None:
    trace = run(H200, clusters(200, 16))
    assert trace[0].placed % 16 == 0
    assert 0 < trace[0].placed < 200 * 16
    row = trace[0].smid
    assert (row[: trace[0].placed] >= 0).all()
    assert (row[trace[0].placed :] == -1).all()


def test_an_even_cluster_needs_whole_tpcs() -> None:
    # Even SMs hold 32 warps more than odd ones.
    held = launch(8 + 62, warps=64 // 2, registers=32)
    small = clusters(1, 4, warps=20, registers=32)
    assert fits(H200, held, small)
    even = [launch(132, warps=16), launch(8 + 62, warps=32), clusters(1, 4, warps=20)]
    assert not fits(H200, *even)
    assert fits(H200, *even[:2], launch(4, warps=20))


def test_an_odd_cluster_takes_one_half_tpc_at_most() -> None:
    even = [launch(132, warps=16), launch(8 + 62, warps=32)]
    assert not fits(H200, *even, clusters(1, 3, warps=20))


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_of_single_blocks_refuse_clusters(policy: str) -> None:
    message = rf"launch 0: cluster: policy '{policy}' places single blocks only; got 4"
    with pytest.raises(ValueError, match=message):
        predict(Sequence([clusters(1, 4)]), "h200", policy)
    assert fits(H200, clusters(1, 4))


def test_a_cluster_larger_than_any_gpc_is_refused() -> None:
    small = gpu(8, "h200", gpcs=((0, 1, 2),), policy="hopper")
    assert fits(small, clusters(1, 6))
    with pytest.raises(ValueError, match=r"launch 0: cluster: an idle .* takes up to 6.*; got 7"):
        run(small, clusters(1, 7))


def test_where_gpcs_are_unknown_the_refusal_of_a_cluster_says_so() -> None:
    unknown = gpu(8, "h200", gpcs=(), policy="hopper")
    assert fits(unknown, clusters(1, 2))
    with pytest.raises(ValueError, match=r"takes up to 2 blocks, as topology\.gpcs does not say"):
        run(unknown, clusters(1, 4))


def test_where_clusters_keep_to_gpcs_one_that_has_only_other_sms_is_refused() -> None:
    other = Partition((124, 125))
    in_gpcs = gpu(132, "h200", gpcs=H200.gpcs, clusters_use_singletons=False)
    assert fits(H200, clusters(1, 2, partition=other))
    with pytest.raises(ValueError, match=r"cluster: this partition .* takes up to 1 blocks; got 2"):
        run(in_gpcs, clusters(1, 2, partition=other))


# -- in which order -------------------------------------------------------------------------------


def test_clusters_go_one_per_turn_and_no_turn_is_lost() -> None:
    first, second = (
        [gpc_of(row[0]) for row in rows]
        for rows in (placed(clusters(3, 4)), placed(clusters(3, 4), clusters(8, 4)))
    )
    assert first == [0, 1, 2]
    assert second == [3, 4, 5, 6, 7, 0, 1, 2]


def test_single_blocks_after_clusters_lose_their_turn() -> None:
    rows = smids(run(H200, clusters(3, 4), launch(132)))
    assert rows[1][:8] == [124, 125, 126, 127, 128, 129, 130, 131]
    assert gpc_of(rows[1][8]) == 3


def test_tpcs_of_no_gpc_take_turns_of_their_own_for_clusters_of_two() -> None:
    assert placed(clusters(4, 2)) == [[128, 129], [130, 131], [124, 125], [126, 127]]
    # Two of them have had their turn, so the other two are first.
    later = placed(clusters(2, 2), clusters(4, 2))
    assert later[:2] == [[128, 129], [130, 131]]


def test_waiting_clusters_that_need_a_gpc_hold_up_the_gpcs_alone() -> None:
    """Trace h200/waits: 49 launches behind such clusters went to the TPCs of no GPC alone."""
    half = launch(132, warps=32, carveout=100)
    quarters = clusters(30, 4, warps=17)  # no room for a second
    *_, waits, behind = run(H200, half, quarters, quarters, launch(264))
    assert waits.placed == 0
    assert waits.limiter == "warps"
    assert set(behind.smid[behind.smid >= 0].tolist()) == set(range(124, 132))
    assert behind.limiter == "queue"


def test_waiting_clusters_that_need_a_gpc_get_the_gpcs_one_launch_after_the_other() -> None:
    """A more urgent one that comes while others wait goes before them."""
    waiting = [clusters(40, 4, warps=32) for _ in range(3)]  # no room for two launches at once
    urgent = clusters(40, 4, warps=32, priority=-1)
    held = [launch(264, warps=32), *waiting, urgent]
    turns = [4, 1, 2, 3]
    for placed_by_now, released in enumerate([0, *turns]):
        events = [*held, Release(0), *map(Release, turns[:placed_by_now])]
        there = [k for k, row in enumerate(final(run(H200, *events))) if row.count(-1) == 0]
        assert there == sorted([0, *turns[: placed_by_now + 1]]), released


def test_waiting_clusters_of_two_hold_up_everything() -> None:
    pairs = clusters(66, 2, warps=17)
    *_, waits, behind = run(H200, launch(132, warps=32), pairs, pairs, launch(1))
    assert waits.placed == behind.placed == 0


def test_where_one_block_fills_what_it_asked_for_the_first_free_sms_are_taken() -> None:
    """Trace h200/mixrandom, s77_475: 228 KB hold two blocks of 114 KB, the 132 KB asked for one."""
    held = launch(9)  # on the SMs of no GPC, and on SM 0
    one = clusters(1, 4, shared_memory=115712, carveout=25)
    two = clusters(1, 4, shared_memory=115712, carveout=100)
    assert placed(held, one) != placed(held, two)
