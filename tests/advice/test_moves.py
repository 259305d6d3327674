"""Programs in other orders: what they compute stays the same, and the host takes its time along."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
from profiled import profiled
from tbsched.advice.moves import MovableUnits
from tbsched.strategies import programs


def kernel(stream: int | str | None, us: float = 10, blocks: int = 132, **rest: Any) -> tb.Launch:
    return tb.Launch(blocks, 1024, 64, stream=stream, duration=us * 1e-6, **rest)


def orders(*events: Any) -> set[tuple[int, ...]]:
    """All orders of the events that change no dependency."""
    units = MovableUnits(tb.Sequence(events))
    every = itertools.permutations(range(len(units)))
    return {units.places(order) for order in every if units.allows(order)}


def test_work_of_a_stream_keeps_its_order_and_other_work_does_not() -> None:
    assert orders(kernel(0), kernel(0)) == {(0, 1)}
    assert orders(kernel(0), kernel(1)) == {(0, 1), (1, 0)}
    assert orders(kernel(None), kernel(None)) == {(0, 1), (1, 0)}


def test_the_legacy_stream_keeps_its_place() -> None:
    assert orders(kernel(0), kernel("legacy"), kernel(1)) == {(0, 1, 2)}


def test_a_wait_goes_with_its_launch_and_stays_behind_the_record() -> None:
    wait = (tb.RecordEvent(3, 0), tb.WaitEvent(3, 1))
    assert orders(kernel(0), *wait, kernel(1)) == {(0, 1, 2, 3)}
    assert orders(kernel(0), tb.RecordEvent(3, 0), kernel(1)) == {(0, 1, 2), (2, 0, 1)}
    assert orders(kernel(0), tb.WaitEvent(3, 1), kernel(1)) == {(0, 1, 2), (1, 2, 0)}
    again = tb.RecordEvent(3, 0)
    assert (0, 1, 4, 2, 3) not in orders(kernel(0), *wait, kernel(1), again)


def test_nothing_passes_a_synchronisation_of_its_host() -> None:
    assert orders(kernel(0), tb.Synchronize(), kernel(1)) == {(0, 1, 2)}
    assert orders(kernel(0), tb.Copy(64, "d2h", stream=2, pinned=False), kernel(1)) == {(0, 1, 2)}
    other = kernel(1, host=1)
    assert len(orders(kernel(0), tb.Synchronize(), other)) == 3


@settings(max_examples=examples(50), deadline=None)
@given(programs("h200"), st.integers(0, 99))
def test_sorted_orders_of_random_programs_change_no_dependency(
    sequence: tb.Sequence, seed: int
) -> None:
    units = MovableUnits(sequence)
    rng = random.Random(seed)
    order = units.sorted_by(lambda _: rng.random())
    assert units.allows(order)
    assert sorted(units.places(order)) == list(range(len(sequence)))


def test_best_order_of_a_program_is_what_the_model_says_of_it() -> None:
    events = [kernel(0, 100), kernel(1, 20, 66), kernel(2, 300, 66), tb.RecordEvent(0, 2),
              tb.WaitEvent(0, 3), kernel(3, 10)]  # fmt: skip
    program = tb.fit_durations(profiled(tb.Sequence(events), "h200"), "h200")
    found = tb.best_order(program, "h200")
    assert found.exact
    assert found.makespan < found.given_makespan
    assert found.order.index(2) < found.order.index(3)
    assert sorted(found.order) == list(range(4))
    trace = tb.predict(found.sequence, "h200", host=found.host)
    assert trace.makespan == found.makespan
    what = tb.what_if(program, "h200", carveouts=(), block_sizes=())
    assert [change.makespan for change in what.changes] == [found.makespan]


def test_the_time_before_a_call_goes_with_it() -> None:
    program = profiled(tb.Sequence([kernel(0, 10), kernel(1, 300)]), "h200")
    gaps = (0.0, 5e-5)
    slow = tb.Program(program.sequence, gaps, program.measured, program.transfers)
    found = tb.best_order(slow, "h200")
    assert found.host == tuple(gaps[k] for k in found.order)


def test_block_sizes_of_a_program_are_given_to_all_launches_of_a_kernel() -> None:
    launches = [kernel(0, name="a"), kernel(0, name="b"), kernel(0, name="a")]
    program = profiled(tb.Sequence(launches), "h200")
    found = tb.what_if(program, "h200", carveouts=(), block_sizes=[512], orders=False)
    names = {change.what for change in found.changes}
    assert names == {"launches 0, 2 in blocks of 512 threads", "launch 1 in blocks of 512 threads"}


def test_a_program_has_its_own_times_between_calls() -> None:
    program = profiled(tb.Sequence([kernel(0)]), "h200")
    for function in (tb.best_order, tb.what_if):
        with pytest.raises(ValueError, match="but a program has its own times"):
            function(program, "h200", launch_interval=0.1)
    empty = tb.Program(tb.Sequence([]), (), program.measured[:0], program.transfers)
    with pytest.raises(ValueError, match="kernels: the program has no launches"):
        tb.best_order(empty, "h200")
