"""Processes that copy, and whose hosts wait: what goes on without the GPU, and what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tbsched as tb
from prediction.test_processes import SHARED, spans, timed, turns
from tbsched.program.sequence import Event

# Slices of 2 ms. A switch takes 0.1 ms; to stop blocks, or to let them go on, 0.01 ms.


def hosted(*programs: list[Event], host: Any = 0.0, spec: Any = SHARED) -> tb.Processes:
    return tb.predict_processes([tb.Sequence(p) for p in programs], spec, host=host)


def copy(ms: float, kind: str = "h2d", stream: int = 0) -> tb.Copy:
    return tb.Copy(1 << 20, kind, duration=ms * 1e-3, stream=stream)


def copied(found: tb.Processes, process: int) -> list[tuple[float, float]]:
    """Returns when each copy and memset begins and ends, in ms."""
    return [tuple(row) for row in (np.asarray(found.traces[process].transfer_ns) / 1e6).tolist()]


def test_an_engine_copies_while_another_process_has_the_gpu() -> None:
    found = hosted([timed(9)], [copy(1), timed(1, stream=0)])
    assert copied(found, 1) == [(0, 1)]
    # The launch behind it waits for the end of the slice.
    assert turns(found) == [(0, 0, 2), (1, 2.11, 3.11), (0, 3.21, 10.22)]


@pytest.mark.parametrize(
    "needs_turn",
    [copy(1, "d2d"), tb.Memset(1 << 20, duration=1e-3, stream=0), tb.Memset(64, stream=0)],
    ids=["d2d", "memset", "small"],
)
def test_other_copies_need_a_turn(needs_turn: Event) -> None:
    found = hosted([timed(9)], [needs_turn, timed(0.1, blocks=1, stream=1)])
    assert copied(found, 1)[0][0] == pytest.approx(2.11)


def test_who_waits_for_a_copy_gives_the_turn_up() -> None:
    found = hosted([timed(0.5, stream=0), copy(1), timed(0.5, stream=0)], [timed(5)])
    assert copied(found, 0) == [(0.5, 1.5)]
    assert turns(found)[:3] == [(0, 0, 0.5), (1, 0.6, 2.6), (0, 2.71, 3.21)]


def test_a_launch_that_waited_for_a_copy_is_seen_in_the_next_turn() -> None:
    program: list[Event] = [timed(3, blocks=1, stream=1), copy(1), timed(0.1, blocks=1, stream=0)]
    found = hosted(program, [timed(3)])
    assert spans(found, 0)[1] == (4.23, 4.33)
    # Nobody else wants the GPU when the copy is over.
    assert spans(hosted(program, [timed(3)], host=[0.0, [1.5e-3]]), 0)[1] == (1, 1.1)


def test_copies_and_events_behind_a_launch_keep_the_slices_going() -> None:
    # At 5 ms the third slice runs, as something waited when the second was over.
    for behind in (copy(0.1), tb.RecordEvent(0, 0)):
        found = hosted([timed(9, stream=0), behind], [timed(0.5)], host=[0.0, [5e-3]])
        assert turns(found)[0] == (0, 0, 6)
    assert turns(hosted([timed(9, stream=0)], [timed(0.5)], host=[0.0, [5e-3]]))[0] == (0, 0, 5)


def test_a_slice_begins_when_a_launch_need_not_wait_for_a_copy_any_more() -> None:
    program: list[Event] = [timed(9, blocks=1), copy(2.5), timed(9, blocks=1, stream=0)]
    # The copy is over at 2.5 ms.
    assert turns(hosted(program, [timed(0.5)], host=[0.0, [3e-3]]))[0] == (0, 0, 4.5)


def test_an_event_behind_launches_that_are_over_waits_for_the_next_turn() -> None:
    before: list[Event] = [timed(0.3, stream=0), tb.Synchronize()]
    behind = copy(1, "d2h")
    assert copied(hosted([*before, behind], [timed(5)]), 0) == [(0.3, 1.3)]
    found = hosted([*before, tb.RecordEvent(0, 0), behind], [timed(5)])
    assert copied(found, 0) == [(2.51, 3.51)]


def test_a_host_goes_on_while_its_process_stands_still() -> None:
    waits = tb.Synchronize(stream=1)
    program = [timed(1, stream=0), tb.Synchronize(), copy(0.25, stream=1), waits]
    found = hosted([*program, copy(0.25, stream=1), waits, timed(1)], [timed(9)], host=[1e-4, 0.0])
    # Gaps of 0.1 ms; the other process came first, and is stopped when its slice is over.
    assert copied(found, 0) == [
        (pytest.approx(begin), pytest.approx(begin + 0.25)) for begin in (3.21, 3.56)
    ]
    assert found.traces[0].issue_times == pytest.approx((1e-4, 3.91e-3))


def test_two_threads_of_a_process_and_a_row_for_each_process() -> None:
    first = tb.Launch(1, 32, 32, duration=1e-3, host=1)
    found = hosted([first, tb.Launch(1, 32, 32, duration=1e-3)], [timed(1)], host=[[0, 1e-4], 0.5])
    assert found.traces[0].issue_times == (0, 1e-4)
    assert found.traces[1].issue_times == (0.5,)
    with pytest.raises(ValueError, match="host: a row for each of 2 processes is needed, got 1"):
        hosted([timed(1)], [timed(1)], host=[0.0])
    with pytest.raises(ValueError, match="process 1: host: 1 gaps are needed"):
        hosted([timed(1)], [timed(1)], host=[0.0, [0.0, 0.0]])
    programs = [tb.Sequence([timed(1)]), tb.Sequence([timed(1), copy(1)])]
    with pytest.raises(ValueError, match="process 1: under MPS nobody knows"):
        tb.predict_processes(programs, SHARED, mps=True)
