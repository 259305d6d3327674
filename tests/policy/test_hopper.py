"""The SMs of Algorithm 1, with block indices handed out in runs per GPC.

An H200 has 8 GPCs and, on SMs 124 to 131, four TPCs of no GPC, which come first.
"""

from __future__ import annotations

import itertools

import pytest

from helpers import launch, released, run, smids
from tbsched.hardware.catalogue import device
from tbsched.hardware.initial_state import InitialState
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence

H200 = device("h200")
SINGLETONS = list(range(124, 132))


def sms_of_gpc(gpc: int) -> list[int]:
    return [sm for tpc in sorted(H200.gpcs[gpc]) for sm in (2 * tpc, 2 * tpc + 1)]


def one_level(start: int) -> list[int]:
    order = [(start + step) % 8 for step in range(8)]
    return SINGLETONS + [sm for gpc in order for sm in sms_of_gpc(gpc)]


def test_one_block_per_sm_goes_to_the_singletons_then_gpc_by_gpc() -> None:
    assert smids(run(H200, launch(132))) == [one_level(0)]


def runs_of(row: list[int]) -> list[tuple[int, int]]:
    """(GPC, blocks) per run; -1 for the singletons."""
    gpcs = (H200.gpc_of_tpc[sm // 2] for sm in row)
    return [(gpc, len(list(run))) for gpc, run in itertools.groupby(gpcs)]


def test_first_turn_of_a_launch_is_lost() -> None:
    # 32 warps each on all singletons: later launches go to the GPCs alone.
    filled, first, second = smids(run(H200, launch(8, warps=32), launch(124), launch(124)))
    assert set(filled) == set(SINGLETONS)
    # GPC 0's turn is lost, so GPC 1 is first; after GPC 0 it is again GPC 1's turn, which is lost.
    assert [gpc for gpc, _ in runs_of(first)] == [1, 2, 3, 4, 5, 6, 7, 0]
    assert [gpc for gpc, _ in runs_of(second)] == [2, 3, 4, 5, 6, 7, 0, 1]


def test_lost_turn_alternates_the_singletons_even_on_an_idle_gpu() -> None:
    rows = smids(run(H200, launch(132), *released(0), launch(132), *released(1), launch(132)))
    turned = SINGLETONS[4:] + SINGLETONS[:4]
    assert [row[:8] for row in rows] == [SINGLETONS, turned, SINGLETONS]
    assert rows[0][8:] == rows[1][8:] == rows[2][8:]


def test_second_whole_level_is_ready_after_eight_turns() -> None:
    (row,) = smids(run(H200, launch(264)))
    # One lost, two for the singletons, five for GPCs; then the singletons' second blocks.
    runs = runs_of(row)
    assert [gpc for gpc, _ in runs] == [-1, 0, 1, 2, 3, 4, -1, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]


def test_last_level_waits_for_the_others_unless_it_is_whole() -> None:
    (row,) = smids(run(H200, launch(263)))
    assert [gpc for gpc, _ in runs_of(row)] == [-1, *range(8), -1, *range(8)]


@pytest.mark.parametrize("state", H200.initial_states())
def test_latent_state_chooses_the_first_gpc_and_the_first_singleton(state: InitialState) -> None:
    (row,) = smids(predict(Sequence([launch(132)]), H200, initial_state=state))
    first = 4 * ((state.first_singleton + 1) // 2 % 2)
    assert row[:8] == SINGLETONS[first:] + SINGLETONS[:first]
    assert row[8:10] == sms_of_gpc(state.first_gpc)[:2]
    assert sorted(row) == list(range(132))


def test_state_that_the_device_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"initial_state: .*first_singleton=4.* initial_states"):
        predict(Sequence([launch()]), H200, initial_state=InitialState(first_singleton=4))


@pytest.mark.parametrize("blocks", [1, 5, 8, 9, 70, 131, 132, 133, 200, 1000, 4224, 4225])
def test_which_sms_take_part_is_algorithm_1_s_choice(blocks: int) -> None:
    events = [Launch(60, 256, 32), Launch(blocks, 32, 32)]
    hopper, reference = (run(H200, *events, policy=name) for name in ("hopper", "algorithm1"))
    for a, b in zip(hopper, reference, strict=True):
        assert a.occupancy(132).tolist() == b.occupancy(132).tolist()


def test_fewer_blocks_than_sms_take_the_preferred_ones_in_runs() -> None:
    (row,) = smids(run(H200, launch(12)))
    assert row == [*SINGLETONS, 0, 2, 4, 6]


def test_without_gpcs_all_sms_count_as_singletons() -> None:
    (row,) = smids(run("rtx3090", launch(82), policy="hopper"))
    assert sorted(row) == list(range(82))
