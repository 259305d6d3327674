"""Hangs that arise above the thread block scheduler.

Lazy loading, the legacy stream, hardware queues that streams share, and the number of grids that a
GPU takes at once: a kernel that waits for one of these never gets to the scheduler while its
partner spins. The blocks get a duration that is longer than all else. A block that starts only when
another one has ended would never start.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tbsched.advice.together.given import Pairs, keeps_order
from tbsched.advice.together.problem import Decision, Problem, Stranding, late_blocks
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.prediction.together.search import FOREVER, STEP
from tbsched.program.sequence import LEGACY_STREAM, Launch, Sequence
from tbsched.traces.trace import Trace

# Causes of waits above the scheduler.
ABOVE = ("first_use", "legacy_stream", "hardware_queue", "grids")
MAX_FOR_ALL_ORDERS = 6  # launches


def hang_above(problem: Problem, *, shrinks: bool = True) -> Decision:
    """Returns whether a launch of a group can hang before it reaches the block scheduler: with a
    witness, if one was found.

    All orders of up to six launches are tried; for more, the given order and those in which one
    launch comes first or last: then it is not known whether a hang was missed. Unless it shrinks,
    the hang may have launches that it does not need.
    """
    launches = problem.launches
    if not _can_hang(problem.spec, launches):
        return Decision(True)
    staying = [endless(launch) for launch in launches]
    plays = 0
    for order in _orders(len(launches), problem.after):
        if problem.deadline <= time.monotonic():
            return Decision(None, plays=plays)
        plays += 1
        hang = _witness_of_order(problem, staying, order)
        if hang is not None:
            hang = _shrunk(problem, staying, hang) if shrinks else hang
            return Decision(False, hang, plays)
    return Decision(True if len(launches) <= MAX_FOR_ALL_ORDERS else None, plays=plays)


def _can_hang(spec: DeviceSpec, launches: tuple[Launch, ...]) -> bool:
    """Returns whether there is anything that can keep launches from reaching the block scheduler:
    kernels that are loaded, the legacy stream, or too many streams or launches."""
    numbered = {launch.stream for launch in launches if launch.stream is not None}
    streams = len(numbered) + sum(launch.stream is None for launch in launches)
    queued = streams > spec.hardware_queues and len(launches) > streams
    legacy = LEGACY_STREAM in numbered
    loads = any(launch.first_use for launch in launches)
    return queued or legacy or loads or len(launches) > spec.resident_grids


def endless(launch: Launch) -> Launch:
    """Returns the launch with blocks that never end."""
    return replace(launch, duration=FOREVER, memory_wait=None)


def _orders(launches: int, after: Pairs) -> Iterator[tuple[int, ...]]:
    """Yields the orders of arrival to try: all of up to six launches, else some."""
    given = tuple(range(launches))
    if launches <= MAX_FOR_ALL_ORDERS:
        orders: Iterator[tuple[int, ...]] = itertools.permutations(given)
    else:
        first = ((k, *given[:k], *given[k + 1 :]) for k in given)
        last = ((*given[:k], *given[k + 1 :], k) for k in given)
        orders = itertools.chain([given], first, last)
    return (order for order in orders if keeps_order(order, after))


def issue_times(launches: int) -> tuple[float, ...]:
    """Returns call times in seconds: each launch arrives after the one before; no block leaves."""
    step = min(STEP, FOREVER / (2 * launches))
    return tuple([number * step for number in range(launches)])


def _witness_of_order(
    problem: Problem, launches: list[Launch], order: tuple[int, ...]
) -> Stranding | None:
    """Returns the witness that a group's launch hangs in one order of arrival; None: none does."""
    sequence = Sequence([launches[k] for k in order])
    times = issue_times(len(order))
    trace = predict(sequence, problem.spec, problem.policy, issue_times=times)
    for place, number in enumerate(order):
        if number in problem.members and late_blocks(trace, place):
            cause, behind = _longest_wait(trace, place)
            other = order[behind] if behind >= 0 else None
            if other == number:  # its kernel is loaded, which waits for all that came before
                other = order[0] if place == 1 else None
            state = problem.spec.initial_states(problem.policy)[0]
            return Stranding(sequence, times, order, state, number, cause, other)
    return None


def _longest_wait(trace: Trace, launch: int) -> tuple[str, int]:
    """Returns the cause of a launch's longest wait in a prediction, and the number of the launch
    that it waited behind; -1: none."""
    assert trace.waits is not None
    waits = trace.waits[trace.waits["launch"] == launch]
    longest = waits[np.argmax(waits["end_ns"] - waits["begin_ns"])]
    return str(longest["cause"]), int(longest["behind"])


def _shrunk(problem: Problem, launches: list[Launch], hang: Stranding) -> Stranding:
    """Returns the same hang without the launches that it does not need."""
    for number in hang.order:
        left = tuple(k for k in hang.order if k != number)
        needed = {first for first, second in problem.after if second in left}
        if left and needed <= set(left):
            hang = _witness_of_order(problem, launches, left) or hang
    return hang
