"""Launches that wait: strict head of line within a priority, the more urgent before the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tbsched as tb
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


@pytest.mark.parametrize(("waiting", "later"), [(2, 3), (3, 2), (-5, -6), (-6, -9)])
def test_priorities_outside_the_range_are_the_nearest_within(waiting: int, later: int) -> None:
    trace = run(
        gpu(priority_levels=6),
        launch(10),
        launch(shared_memory=90 * 1024, priority=waiting),
        launch(priority=later),
    )
    assert smids(trace)[2] == [-1]


def test_no_priority_overtakes_a_waiting_cooperative_launch() -> None:
    waits = tb.Launch(16, 64, 16, cooperative=True)
    trace = run(ONE, launch(10), waits, launch(priority=-6))
    assert smids(trace)[2] == [-1]


def test_nodes_and_timed_launches_have_the_priorities_of_the_device() -> None:
    def starts(*events: tb.Launch | tb.GraphLaunch) -> list[int]:
        return [int(p.start_ns.min()) for p in tb.predict(tb.Sequence(events), "xavier")]  # type: ignore[union-attr]

    full = tb.Launch(16, 1024, 32, duration=1e-3)
    levels = [replace(full, stream=k, priority=level) for k, level in enumerate((0, -1, -5))]
    assert starts(*levels) == [2_000_000, 0, 1_000_000]
    nodes = [replace(full, priority=level) for level in (0, -1, -5)]
    assert starts(tb.Graph(nodes).launch()) == [2_000_000, 0, 1_000_000]
