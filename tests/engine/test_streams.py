"""Launches of one stream run one after the other; those of others do not wait for them."""

from __future__ import annotations

from helpers import final, gpu, launch, released, run, smids

ONE = gpu()


def test_launch_waits_for_the_one_before_it_in_its_stream_though_there_is_room() -> None:
    trace = run(ONE, launch(stream=1), launch(stream=1))
    assert smids(trace) == [[0], [-1]]
    assert trace[1].limiter == "stream"


def test_launches_of_different_streams_run_beside_each_other() -> None:
    assert smids(run(ONE, launch(stream=1), launch(stream=2), launch())) == [[0], [0], [0]]


def test_launches_without_a_stream_have_one_each() -> None:
    assert smids(run(ONE, launch(), launch())) == [[0], [0]]


def test_launch_starts_when_the_one_before_it_is_released() -> None:
    assert final(run(ONE, launch(stream=1), launch(stream=1), *released(0))) == [[0], [0]]


def test_launch_waits_for_all_blocks_of_a_released_one_to_have_run() -> None:
    # Launch 1 is released while half of it waits for a slot: launch 2 cannot start yet.
    before = [launch(8), launch(16, stream=1), *released(1), launch(stream=1)]
    assert smids(run(ONE, *before))[2] == [0]  # its second half exits as it comes
    held = [launch(16), launch(16, stream=1), *released(1), launch(stream=1)]
    assert run(ONE, *held)[2].limiter == "stream"
    assert final(run(ONE, *held, *released(0))) == [[0] * 16, [0] * 16, [0]]


def test_launch_that_waits_for_its_stream_does_not_hold_up_others() -> None:
    trace = run(ONE, launch(stream=1), launch(stream=1), launch(stream=2), launch())
    assert smids(trace) == [[0], [-1], [0], [0]]


def test_stream_is_kept_in_order_though_the_later_launch_is_more_urgent() -> None:
    before = [launch(stream=1), launch(stream=1, priority=-1), launch(stream=1, priority=-2)]
    trace = run(ONE, *before, *released(0))
    assert final(trace) == [[0], [0], [-1]]
    assert run(ONE, *before)[2].limiter == "stream"
    assert final(run(ONE, *before, *released(0), *released(1)))[2] == [0]


def test_stream_goes_on_though_its_last_launch_was_released_before_it_ran() -> None:
    trace = run(ONE, launch(16), launch(stream=1), launch(stream=1), *released(1), *released(0))
    assert final(trace) == [[0] * 16, [0], [0]]
