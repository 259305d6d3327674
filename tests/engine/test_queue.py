"""Launches that wait: strict head of line within a priority, the more urgent before the others."""

from __future__ import annotations

import pytest

from helpers import final, gpu, launch, released, run, smids
from tbsched.program.sequence import Event

ONE = gpu()  # 16 slots
FREE = gpu(launch_order="pass_by")


def test_launch_that_does_not_fit_is_placed_as_far_as_there_is_room() -> None:
    trace = run(ONE, launch(10), launch(10))
    assert smids(trace) == [[0] * 10, [0] * 6 + [-1] * 4]
    assert trace[1].limiter == "slots"


@pytest.mark.parametrize("waiting", [launch(17), launch(shared_memory=90 * 1024)])
def test_waiting_launch_holds_up_a_later_one_that_would_fit(waiting: Event) -> None:
    before = [launch(10, warps=1), waiting]
    trace = run(ONE, *before, launch())
    assert trace[2].limiter == "queue"
    assert smids(trace)[2] == [-1]


def test_without_head_of_line_a_later_launch_that_fits_passes() -> None:
    before = [launch(10), launch(shared_memory=90 * 1024)]
    assert smids(run(FREE, *before, launch()))[2] == [0]
    assert smids(run(ONE, *before, launch()))[2] == [-1]


def test_launch_placed_whole_holds_up_nothing() -> None:
    assert smids(run(ONE, launch(10), launch(5), launch(1))) == [[0] * 10, [0] * 5, [0]]


def test_waiting_launches_are_placed_in_order_of_launch() -> None:
    trace = run(ONE, launch(16), launch(10), launch(10), *released(0))
    assert final(trace) == [[0] * 16, [0] * 10, [0] * 6 + [-1] * 4]


def test_more_urgent_launch_passes_a_waiting_one() -> None:
    before = [launch(10), launch(shared_memory=90 * 1024)]
    assert smids(run(ONE, *before, launch(priority=-1)))[2] == [0]
    assert smids(run(ONE, *before, launch(priority=0)))[2] == [-1]


def test_less_urgent_launch_waits_behind_a_waiting_one() -> None:
    trace = run(ONE, launch(10), launch(shared_memory=90 * 1024), launch(priority=1))
    assert trace[2].limiter == "queue"


def test_more_urgent_launch_does_not_displace_resident_blocks() -> None:
    trace = run(ONE, launch(16), launch(priority=-1))
    assert smids(trace) == [[0] * 16, [-1]]
    assert trace[1].limiter == "slots"


def test_more_urgent_launch_goes_before_the_remaining_blocks_of_an_earlier_one() -> None:
    trace = run(ONE, launch(10), launch(10), launch(8, priority=-1), *released(0))
    assert smids(trace)[1] == [0] * 6 + [-1] * 4
    assert final(trace) == [[0] * 10, [0] * 8 + [-1] * 2, [0] * 8]


def test_waiting_more_urgent_launch_holds_up_all_others() -> None:
    trace = run(ONE, launch(10), launch(10, priority=-1), launch(), launch(priority=1))
    assert [placement.limiter for placement in trace] == [None, "slots", "queue", "queue"]


def test_order_within_a_priority_is_that_of_launch_whatever_came_between() -> None:
    trace = run(
        ONE,
        launch(16),
        launch(8, priority=1),
        launch(8, priority=-1),
        launch(8, priority=1),
        launch(8, priority=-1),
        *released(0),
    )
    placed = [row.count(0) for row in final(trace)]
    assert placed == [16, 0, 8, 0, 8]
