"""Releases make room; the blocks that waited get it, and ``final_smid`` shows where."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import final, gpu, last, launch, released, run, smids
from tbsched.hardware.catalogue import device
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Release, Sequence

ONE = gpu()


def test_blocks_placed_after_a_release_are_in_final_smid_only() -> None:
    trace = run(ONE, launch(16), launch(2), *released(0))
    assert smids(trace)[1] == [-1, -1]
    assert final(trace)[1] == [0, 0]
    assert trace[1].limiter == "slots"


def test_block_once_placed_keeps_its_sm_in_both() -> None:
    trace = run(gpu(2), launch(3), launch(2), *released(0))
    assert final(trace)[0] == smids(trace)[0]


def test_without_releases_smid_and_final_smid_are_the_same() -> None:
    trace = run(ONE, launch(10), launch(10), launch())
    assert smids(trace) == final(trace)


def test_smid_is_what_was_placed_before_the_next_event_whatever_that_is() -> None:
    trace = run(ONE, launch(16), launch(), launch(), *released(0))
    assert smids(trace)[1:] == [[-1], [-1]]
    assert final(trace)[1:] == [[0], [0]]


def test_blocks_of_a_released_launch_exit_as_soon_as_they_are_placed() -> None:
    # 100 blocks pass through one SM's 6 free slots, and leave it as it was.
    trace = run(ONE, launch(10), launch(100), *released(1), launch(6), launch())
    assert final(trace)[1] == [0] * 100
    assert smids(trace)[2:] == [[0] * 6, [-1]]


def test_released_launch_that_cannot_start_still_waits_its_turn() -> None:
    trace = run(ONE, launch(16), launch(3), *released(1), launch(2))
    assert final(trace)[1:] == [[-1] * 3, [-1] * 2]
    assert trace[2].limiter == "queue"
    trace = run(ONE, launch(16), launch(3), *released(1), launch(2), *released(0))
    assert final(trace)[1:] == [[0] * 3, [0] * 2]


def test_released_launch_passes_before_those_behind_it_take_the_room() -> None:
    trace = run(ONE, launch(15), launch(20), launch(4), *released(1))
    assert final(trace)[1] == [0] * 20
    assert final(trace)[2] == [0, -1, -1, -1]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([Release(0)], "only 0 launches come before it"),
        ([launch(), Release(1)], "only 1 launches come before it"),
        ([launch(), Release(0), Release(0)], "launch 0 is released already"),
    ],
)
def test_release_of_nothing_is_refused(events: list[Launch | Release], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sequence(events)


def test_empty_sequence_has_an_empty_trace() -> None:
    assert len(predict(Sequence(), "h200")) == 0


def test_arrays_are_int32_one_per_block() -> None:
    placement = last("h200", launch(1000))
    assert placement.final_smid is not None
    for array in (placement.smid, placement.final_smid):
        assert array.dtype == np.int32
        assert array.shape == (1000,)


def test_prediction_says_what_predicted_it() -> None:
    trace = predict(Sequence([launch()]), "h200", policy="first_fit")
    assert trace.device.sms == device("h200").sms
    assert trace.device.details["model"] == "h200"
    assert trace.device.details["policy"] == "first_fit"
