"""Hangs that arise above the thread block scheduler.

Lazy loading, the legacy stream, hardware queues that streams share, and the number of grids that a
GPU takes at once: a kernel that waits for one of these never gets to the scheduler while its
partner spins. The blocks get a duration that is longer than all else. A block that starts only when
another one has ended would never start.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tbsched.advice.together.given import Pairs, keeps
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.prediction.together.search import FOREVER, STEP
from tbsched.program.sequence import LEGACY_STREAM, Launch, Sequence
from tbsched.traces.trace import Trace

# Causes of waits above the scheduler.
ABOVE = ("first_use", "legacy_stream", "hardware_queue", "grids")
MOST_IN_ALL_ORDERS = 6  # launches


@dataclass(frozen=True, slots=True)
class Hang:
    """A launch that never gets to the scheduler; attributes as of `Stranding`."""

    sequence: Sequence
    order: tuple[int, ...]
    stranded: int
    cause: str
    behind: int | None


@dataclass(frozen=True, slots=True)
class Above:
    """What was found above the scheduler.

    Attributes:
        hang: the first hang that was found.
        complete: whether all orders were tried, so that no hang was missed.
        plays: how many predictions it took.
    """

    hang: Hang | None
    complete: bool
    plays: int


def hang_above(
    spec: DeviceSpec,
    policy: str,
    launches: tuple[Launch, ...],
    members: tuple[int, ...],
    after: Pairs,
    deadline: float = math.inf,
    *,
    shrinks: bool = True,
) -> Above:
    """Searches for an order of calls in which a launch of a group never reaches the scheduler.

    All orders of up to six launches are tried; for more, the given order and those in which one
    launch comes first or last. Unless it shrinks, the hang may have launches that it does not need.
    """
    if not _can_hang(spec, launches):
        return Above(None, True, 0)
    plays = 0
    staying = [endless(launch) for launch in launches]
    for order in _orders(len(launches), after):
        if deadline <= time.monotonic():
            return Above(None, False, plays)
        plays += 1
        hang = _played(spec, policy, staying, order, members)
        if hang is not None:
            if shrinks:
                hang = _without_others(spec, policy, staying, hang, members, after)
            return Above(hang, True, plays)
    return Above(None, len(launches) <= MOST_IN_ALL_ORDERS, plays)


def _can_hang(spec: DeviceSpec, launches: tuple[Launch, ...]) -> bool:
    numbered = {one.stream for one in launches if one.stream is not None}
    streams = len(numbered) + sum(one.stream is None for one in launches)
    queued = streams > spec.hardware_queues and len(launches) > streams
    legacy = LEGACY_STREAM in numbered
    loads = any(one.first_use for one in launches)
    return queued or legacy or loads or len(launches) > spec.resident_grids


def endless(launch: Launch) -> Launch:
    """Returns the launch with blocks that stay for ever."""
    return replace(launch, duration=FOREVER, memory_wait=None)


def _orders(launches: int, after: Pairs) -> Iterator[tuple[int, ...]]:
    given = tuple(range(launches))
    if launches <= MOST_IN_ALL_ORDERS:
        orders: Iterator[tuple[int, ...]] = itertools.permutations(given)
    else:
        first = ((k, *given[:k], *given[k + 1 :]) for k in given)
        last = ((*given[:k], *given[k + 1 :], k) for k in given)
        orders = itertools.chain([given], first, last)
    return (order for order in orders if keeps(order, after))


def issue_times(launches: int) -> tuple[float, ...]:
    """Returns call times: each launch arrives after the one before, and before any block leaves."""
    step = min(STEP, FOREVER / (2 * launches))
    return tuple([number * step for number in range(launches)])


def late_blocks(trace: Trace, launch: int) -> int:
    """Returns how many blocks of a launch start only when others have ended, or never."""
    start_ns = trace[launch].start_ns
    assert start_ns is not None
    return int(np.count_nonzero((trace[launch].smid < 0) | (start_ns >= FOREVER * 1e9)))


def _played(
    spec: DeviceSpec,
    policy: str,
    launches: list[Launch],
    order: tuple[int, ...],
    members: tuple[int, ...],
) -> Hang | None:
    sequence = Sequence([launches[k] for k in order])
    trace = predict(sequence, spec, policy, issue_times=issue_times(len(order)))
    for place, number in enumerate(order):
        if number in members and late_blocks(trace, place):
            cause, behind = _why(trace, place)
            other = order[behind] if behind >= 0 else None
            if other == number:  # its kernel is loaded, which waits for all that came before
                other = order[0] if place == 1 else None
            return Hang(sequence, order, number, cause, other)
    return None


def _why(trace: Trace, launch: int) -> tuple[str, int]:
    """Returns the cause of the launch's longest wait, and the launch that it waited behind."""
    assert trace.waits is not None
    own = trace.waits[trace.waits["launch"] == launch]
    longest = own[np.argmax(own["end_ns"] - own["begin_ns"])]
    return str(longest["cause"]), int(longest["behind"])


def _without_others(
    spec: DeviceSpec,
    policy: str,
    launches: list[Launch],
    hang: Hang,
    members: tuple[int, ...],
    after: Pairs,
) -> Hang:
    """Returns the same hang without launches that it does not need."""
    shortest = hang
    for number in hang.order:
        left = tuple(k for k in shortest.order if k != number)
        needed = {first for first, second in after if second in left}
        if left and needed <= set(left):
            shortest = _played(spec, policy, launches, left, members) or shortest
    return shortest
