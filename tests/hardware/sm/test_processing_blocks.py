"""Mechanisms 2.1 and 2.2: which processing block of its SM each warp goes to, and its slot there.

A warp of 255 registers takes half of a processing block's registers, so two fill it. The SMs here
have 4 processing blocks of 12 warps each, unless the test says otherwise; shared memory is out of
the way.
"""

from __future__ import annotations

from typing import Any

import pytest

from helpers import fits, gpu, last, launch, released, room
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Event, Launch, Sequence

ROOMY: dict[str, Any] = {"shared_memory_configuration": False, "shared_memory": "pooled"}
STRICT = gpu(**ROOMY)
NO_SKIP = gpu(warp_skip=False, **ROOMY)
FREE = gpu(strict_round_robin=False, warp_skip=False, **ROOMY)
WHOLE = gpu(processing_blocks=1, **ROOMY)


def heavy(warps: int, blocks: int = 1) -> Launch:
    return launch(blocks, warps, registers=255)


@pytest.mark.parametrize(
    ("threads", "blocks"),
    [(96, 16), (97, 12), (128, 12), (129, 9), (256, 6), (257, 5), (512, 3), (513, 2), (1024, 1)],
)
def test_last_warp_slot_fits_one_more_does_not(threads: int, blocks: int) -> None:
    assert room(STRICT, Launch(1, threads, 16)) == blocks


def test_warp_of_one_thread_takes_a_whole_warp_slot() -> None:
    assert last(STRICT, launch(3, warps=15), Launch(3, 1, 16)).limiter is None
    assert last(STRICT, launch(3, warps=15), Launch(4, 1, 16)).limiter == "warps"


def test_warp_waits_for_the_processing_block_in_turn_though_others_have_room() -> None:
    # Blocks of two warps fill processing blocks 0, 1 and 2, 3 in turn; 0 is next again.
    full = [heavy(2), heavy(2), heavy(2), heavy(2)]
    assert fits(STRICT, *full, *released(0, 2), heavy(2))
    assert not fits(STRICT, *full, *released(1, 3), heavy(2))
    assert last(STRICT, *full, *released(1, 3), heavy(2)).limiter == "registers"


@pytest.mark.parametrize("spec", [FREE, WHOLE], ids=["free warps", "no processing blocks"])
def test_without_strict_turns_any_processing_block_with_room_takes_the_warp(
    spec: DeviceSpec,
) -> None:
    full = [heavy(2), heavy(2), heavy(2), heavy(2)]
    assert fits(spec, *full, *released(1, 3), heavy(4))
    assert not fits(spec, *full, *released(1, 3), heavy(5))


def test_processing_block_is_skipped_after_four_warps_so_two_more_fit_three_do_not() -> None:
    before = [heavy(1), heavy(4)]  # 0, then 1 2 3 0, then 1 is skipped
    assert fits(STRICT, *before, heavy(2))
    assert not fits(STRICT, *before, heavy(3))
    assert fits(NO_SKIP, *before, heavy(3))
    assert not fits(NO_SKIP, *before, heavy(4))


def pointer_after(warps: int, spec: DeviceSpec) -> int:
    """The processing block next in turn after a block of so many warps that began at 1.

    A heavy warp stays on 0, so that 4 + n more fit if 0 comes up after n others.
    """
    left = room(spec, heavy(1), launch(1, warps), *released(1), heavy(1))
    return (4 - left) % 4


@pytest.mark.parametrize(
    ("warps", "strict", "no_skip"),
    [
        (1, 2, 2),
        (2, 3, 3),
        (3, 0, 0),
        (4, 2, 1),
        (5, 2, 2),
        (7, 0, 0),
        (8, 2, 1),
        (9, 2, 2),
        (12, 2, 1),
        (31, 0, 0),
        (32, 2, 1),
    ],
)
def test_pointer_moves_by_the_warps_and_by_one_more_after_a_multiple_of_four(
    warps: int, strict: int, no_skip: int
) -> None:
    assert pointer_after(warps, STRICT) == strict
    assert pointer_after(warps, NO_SKIP) == no_skip


def test_pointer_stays_where_it_is_when_a_block_exits() -> None:
    # One light warp that came and went has used up the turn of processing block 1.
    assert room(STRICT, heavy(1), heavy(1)) == 7
    assert room(STRICT, heavy(1), launch(), *released(1), heavy(1)) == 6


def test_pointer_of_each_sm_is_its_own() -> None:
    # Both SMs hold one heavy warp; a light one came and went on SM 0 alone.
    two = gpu(2, **ROOMY)
    before = [heavy(1, blocks=2), launch(), *released(1)]
    assert last(two, *before, heavy(1)).smid.tolist() == [1]
    assert room(two, *before, heavy(1)) == 6 + 7


def test_fullest_processing_block_bounds_the_sm() -> None:
    # 6 of the 12 warps of processing block 0 are taken, none of the others.
    events = [launch(1), launch(1, warps=3)] * 6
    lonely = released(1, 3, 5, 7, 9, 11)
    assert room(STRICT, *events, *lonely, launch(1, warps=4)) == 6
    assert room(WHOLE, *events, *lonely, launch(1, warps=4)) == 10


def test_warps_on_an_sm_are_counted_per_processing_block_of_each_device() -> None:
    # 32 warps in 4 processing blocks of 8.
    turing = gpu(base="pegasus")
    assert last(turing, launch(4, warps=8)).limiter is None
    assert last(turing, launch(5, warps=8)).limiter == "warps"


def test_block_larger_than_any_sm_is_refused_before_it_waits() -> None:
    small = gpu(warps_per_sm=16, threads_per_block=1024)
    assert fits(small, launch(1, warps=16))
    with pytest.raises(ValueError, match=r"launch 0: threads: 544 is more than .* allows, 512"):
        last(small, launch(1, warps=17))


# -- slots ----------------------------------------------------------------------------------------


def slots(spec: DeviceSpec, *events: Event) -> list[list[int]]:
    """The warp slots of each block of the last launch; slot = processing block + 4 x index."""
    found = predict(Sequence(events), spec, warp_slots=True)[-1].warp_slots
    assert found is not None
    assert found.dtype == "int32"
    return found.tolist()  # type: ignore[no-any-return]


def test_warps_of_a_block_take_their_turns_index_by_index() -> None:
    assert slots(STRICT, launch(warps=6)) == [[0, 1, 2, 3, 4, 5]]
    assert slots(STRICT, launch(warps=3), launch(warps=3)) == [[3, 4, 5]]
    assert slots(STRICT, launch(2, warps=4)) == [[0, 1, 2, 3], [5, 6, 7, 4]]  # one is skipped


def test_warp_takes_the_lowest_free_index_and_not_the_next() -> None:
    rows = [launch(warps=3), launch(), launch(warps=3), launch()]  # 0 1 2, 3, 4 5 6, 7
    assert slots(STRICT, *rows, launch(warps=5)) == [[8, 9, 10, 11, 12]]
    assert slots(STRICT, *rows, *released(0), launch(warps=5)) == [[0, 1, 2, 11, 8]]
    assert slots(STRICT, *rows, *released(1), launch(warps=5)) == [[8, 9, 10, 3, 12]]
    assert slots(STRICT, *rows, *released(2), launch(warps=5)) == [[4, 5, 6, 11, 8]]


def test_turns_go_on_where_they_stood_on_an_idle_sm_but_indices_begin_at_the_lowest() -> None:
    assert slots(STRICT, launch(warps=5), *released(0), launch(warps=3)) == [[1, 2, 3]]
    assert slots(STRICT, launch(warps=4), *released(0), launch(warps=3)) == [[1, 2, 3]]
    assert slots(NO_SKIP, launch(warps=4), *released(0), launch(warps=3)) == [[0, 1, 2]]


def test_slots_of_each_sm_are_its_own_and_come_in_the_order_of_the_blocks() -> None:
    two = gpu(2, **ROOMY)
    assert slots(two, launch(warps=1), launch(4, warps=2)) == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert last(two, launch(warps=1), launch(4, warps=2)).smid.tolist() == [1, 0, 1, 0]


def test_last_slot_of_an_sm_is_given_out_and_blocks_that_wait_have_none() -> None:
    found = slots(STRICT, launch(1, warps=15), launch(4, warps=15))
    assert max(max(row) for row in found) == 44
    assert found[2:] == [[-1] * 15] * 2


def test_slots_that_become_free_after_the_next_event_are_not_a_launch_s() -> None:
    sequence = Sequence([launch(3, warps=15), launch(1, warps=15), *released(0)])
    trace = predict(sequence, STRICT, warp_slots=True)
    assert trace[1].final_smid is not None
    assert trace[1].final_smid.tolist() == [0]
    assert trace[1].warp_slots is not None
    assert trace[1].warp_slots.tolist() == [[-1] * 15]


def test_sm_without_processing_blocks_counts_its_slots_through() -> None:
    assert slots(WHOLE, launch(warps=3), launch(warps=2), *released(0), launch(warps=4)) == [
        [0, 1, 2, 5]
    ]


def test_slots_are_predicted_only_when_asked_for() -> None:
    assert last(STRICT, launch()).warp_slots is None


def test_slots_are_refused_where_warps_do_not_go_in_strict_turn_or_launches_end() -> None:
    with pytest.raises(ValueError, match=r"warp_slots: .* has strict_round_robin off"):
        slots(FREE, launch())
    with pytest.raises(ValueError, match="warp_slots: True needs launches that are held"):
        slots(STRICT, launch(duration=1.0))
    with pytest.raises(TypeError, match="warp_slots: True or False is needed, got 1"):
        predict(Sequence([launch()]), STRICT, warp_slots=1)  # type: ignore[arg-type]


def test_warps_with_slots_are_limited_to_two_to_the_28() -> None:
    with pytest.raises(ValueError, match=r"warp_slots: 268435464 warps in all are more than"):
        slots(STRICT, launch(2**25 + 1, warps=8))
