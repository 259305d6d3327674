"""Waits of a host that come later, and values that it need not read."""

from __future__ import annotations

from typing import Any

import pytest

import tbsched as tb
from profiled import profiled
from tbsched.advice.change import Change

US, MS = 1e-6, 1e-3
STEPS = 5


def launched(name: str, stream: int, blocks: int = 40) -> tb.Launch:
    return tb.Launch(
        blocks, 256, 32, stream=stream, duration=0.2 * MS, name=name, non_blocking=True
    )


def change(words: str, events: list[Any], host: float = 5 * US) -> Change | None:
    found = tb.explain(profiled(tb.Sequence(events), "h100", host), "h100")
    return next((x for x in found.changes if words in x.what), None)


def step(*last: Any) -> list[Any]:
    """Two kernels in each of three streams, and a wait for each stream in turn."""
    return [
        event
        for stream in (1, 2, 3)
        for event in (
            launched(f"first {stream}", stream),
            launched(f"second {stream}", stream),
            tb.Synchronize(stream=stream),
        )
    ] + [*last]


def test_waits_for_streams_in_turn_are_one_wait_at_the_end_of_each_step() -> None:
    events = step() * STEPS
    found = change(f"{3 * STEPS} synchronisations of the host as {STEPS}", events)
    assert found is not None
    waits = [event for event in found.sequence if isinstance(event, tb.Synchronize)]
    assert waits == [tb.Synchronize()] * STEPS  # for all streams
    # The streams run side by side, and the host still waits at the end of a step.
    whole = tb.predict(tb.Sequence(events), "h100", host=5 * US).makespan
    assert found.saves == pytest.approx(STEPS * 4 * 0.2 * MS, rel=0.1)
    without = change("synchronisations of the host", events)
    assert without is not None
    assert found.saves <= without.saves < whole


def test_the_wait_for_one_stream_stays_what_it_is() -> None:
    names = [f"kernel {n}" for n in range(4)]
    events = [x for name in names for x in (launched(name, 1), tb.Synchronize(stream=1))] * STEPS
    found = change(f"{4 * STEPS} synchronisations of the host as {STEPS}", events, host=40 * US)
    assert found is not None
    waits = [event for event in found.sequence if isinstance(event, tb.Synchronize)]
    assert waits == [tb.Synchronize(stream=1)] * STEPS


def test_one_wait_in_each_step_is_no_later() -> None:
    names = [f"kernel {n}" for n in range(5)]
    events = [*(launched(name, 1) for name in names), tb.Synchronize(stream=1)] * STEPS
    assert change("synchronisations of the host as", events, host=60 * US) is None


# Values that are read.


def iteration(size: int, **how: Any) -> list[Any]:
    copy = tb.Copy(size, "d2h", stream=1, duration=1.5 * US, non_blocking=True, **how)
    wait = [tb.Synchronize(stream=1)] if how.get("pinned", True) else []
    return [launched("iterate", 1), copy, *wait]


@pytest.mark.parametrize("pinned", [True, False])
def test_without_values_that_the_host_reads_no_copy_is_made(pinned: bool) -> None:
    events = iteration(4, pinned=pinned) * 20
    found = change("without 20 values that the host copies", events)
    assert found is not None
    assert not any(isinstance(event, tb.Copy) for event in found.sequence)
    assert found.makespan == pytest.approx(20 * 0.2 * MS, rel=0.02)


def test_what_is_more_than_a_value_is_copied() -> None:
    assert change("values that the host copies", iteration(4096, pinned=True) * 20) is None
