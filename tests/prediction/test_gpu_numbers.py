"""Which number a GPU has decides nothing: what happens at one instant has an order of its own."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from tbsched.program.sequence import Event

KERNEL = tb.Launch(2, 32, 32, duration=1e-5)


def numbered(events: list[Any], numbers: tuple[int, ...]) -> tb.Sequence:
    """The program with other numbers of GPUs."""
    return tb.Sequence([replace(event, gpu=numbers[event.gpu]) for event in events])


def times(events: list[Event], numbers: tuple[int, ...], **calls: float) -> list[tuple[int, ...]]:
    """When the blocks of each launch start; an empty row for each that hangs."""
    trace = tb.predict(numbered(events, numbers), ["h200"] * len(numbers), **calls)  # type: ignore[arg-type]
    found = [placement.start_ns for placement in trace]
    return [tuple(np.asarray(start).tolist()) for start in found]


def program(seed: int, gpus: int) -> list[Event]:
    """Values that are written and awaited at the same instants, and kernels behind them."""
    drawn = random.Random(seed)
    events: list[Event] = []
    for gpu in range(gpus):
        for stream in range(2):
            where: dict[str, Any] = {"gpu": gpu, "stream": stream, "host": 2 * gpu + stream}
            for _ in range(drawn.randint(0, 3)):
                make = drawn.choice((tb.WriteValue, tb.WaitValue))
                events.append(make(drawn.choice("xy"), value=drawn.choice((0, 1, 2)), **where))
            events.append(replace(KERNEL, **where))
    drawn.shuffle(events)
    return events


@pytest.mark.parametrize("seed", range(150))
def test_numbers_of_gpus_decide_nothing(seed: int) -> None:
    gpus = 2 + seed % 2
    events = program(seed, gpus)
    for calls in ({}, {"launch_interval": 0.0}):
        first = times(events, tuple(range(gpus)), **calls)
        assert times(events, tuple(reversed(range(gpus))), **calls) == first


@pytest.mark.parametrize("numbers", [(0, 1), (1, 0)])
def test_wait_that_begins_with_a_write_of_another_gpu_waits_for_it(
    numbers: tuple[int, int],
) -> None:
    wait, write = tb.WaitValue("x", stream=0), tb.WriteValue("x", stream=1, host=1, gpu=1)
    late: list[Event] = [wait, replace(KERNEL, stream=0), write]
    begun: list[Event] = [tb.WriteValue("x", stream=2), *late[:2]]
    assert times(late, numbers)[0] > times(begun, numbers)[0]


@pytest.mark.parametrize("numbers", [(0, 1, 2), (2, 1, 0)])
@pytest.mark.parametrize("last", [0, 1])
def test_of_two_writes_at_one_instant_the_one_issued_last_counts(
    numbers: tuple[int, ...], last: int
) -> None:
    """A third GPU looks at the value later."""
    writes: list[Event] = [
        tb.WriteValue("x", value=1 - last, stream=0, gpu=0, host=0),
        tb.WriteValue("x", value=last, stream=0, gpu=1, host=1),
    ]
    waits: list[Event] = [
        tb.HostCall("think", 1e-3, host=2), tb.WaitValue("x", stream=0, gpu=2, host=2),
        replace(KERNEL, stream=0, gpu=2, host=2),
    ]  # fmt: skip
    trace = tb.predict(numbered([*writes, *waits], numbers), ["h200"] * 3)
    assert (trace.hang is None) is (last == 1)


@pytest.mark.parametrize("numbers", [(0, 1), (1, 0)])
def test_call_takes_as_long_as_the_device_of_its_gpu_says(numbers: tuple[int, int]) -> None:
    h200 = tb.device("h200")
    other = replace(
        h200, launch_call_ns=9_000, synchronize_ns=7_000, first_call_ns=500,
        local_memory_initial=4_096,
    )  # fmt: skip
    events: list[Event] = []
    for gpu in (0, 1):
        where: dict[str, Any] = {"gpu": gpu, "host": gpu}
        events += [replace(KERNEL, stream=0, local_memory=2_048, **where), tb.Synchronize(**where)]
    gaps = [0.0, 0.0, 1e-2, 0.0]  # the threads never wait for each other
    devices = [h200, other]
    placed = [devices[numbers.index(number)] for number in (0, 1)]
    calls = tb.predict(numbered(events, numbers), placed, host=gaps).call_ns
    assert calls is not None
    for gpu in (0, 1):
        own = slice(2 * gpu, 2 * gpu + 2)
        alone = tb.Sequence([replace(event, gpu=0, host=0) for event in events[own]])
        assert (calls[own] == tb.predict(alone, devices[gpu], host=gaps[own]).call_ns).all()


def test_thread_does_not_wait_for_the_driver_that_its_own_call_has() -> None:
    gpu = replace(tb.device("h200"), driver_call_ns=20_000)  # longer than a whole call
    for host in (0, 3):
        events = [replace(KERNEL, stream=stream, host=host) for stream in (0, 1, 2)]
        calls = tb.predict(tb.Sequence(events), gpu, host=0.0).call_ns
        assert calls is not None
        assert (calls[1:, 0] == calls[:-1, 1]).all()
