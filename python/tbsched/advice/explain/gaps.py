"""The times in which the GPU could have done more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tbsched.advice.explain.causes import causes_of
from tbsched.advice.explain.costs import shared_costs
from tbsched.advice.explain.explanation import Cause, Gap
from tbsched.advice.explain.facts import NOTHING, Facts
from tbsched.program.arrays import BoolArray

_MAX_GAPS = 1000  # gaps, the longest ones
_MIN_GAP_NS = 1000  # shorter ones are the noise of clocks
_NEXT_NS = 10_000  # within which a kernel starts that waited for the end of others


def gaps_of(facts: Facts) -> list[Gap]:
    """Returns the longest gaps during which other kernels ran, with their costs."""
    ready = [*_beside_other_streams(facts), *_behind_own_stream(facts)]
    ready.sort(key=lambda ready_: ready_.begin - ready_.end)
    gaps = [_gap(facts, ready_) for ready_ in ready[:_MAX_GAPS]]
    costs = shared_costs(facts, gaps)
    gpu = int(facts.account.activity.work["gpu"][int(facts.program.measured["work"][0])])
    return [
        replace(
            gap, cost=cost, name=facts.program.sequence.launches[gap.launch].name or "", gpu=gpu
        )
        for gap, cost in zip(gaps, costs, strict=True)
        if cost > 0
    ]


class _ReadyTime(NamedTuple):
    """A time in ns in which a launch was ready and did not run; ``behind``: what ran before it."""

    launch: int
    begin: float
    end: float
    behind: int = NOTHING


def _gap(facts: Facts, ready: _ReadyTime) -> Gap:
    """Returns the gap of a launch that was ready, without its cost."""
    launch, begin, end, behind = ready
    if behind == NOTHING:
        kind, causes = "stream", causes_of(facts, launch, begin, end)
    else:
        kind = "order"
        causes = (Cause(_order_cause(facts, launch, behind), (end - begin) / 1e9, behind),)
    return Gap(kind, launch, begin / 1e9, end / 1e9, 0.0, causes)


def _beside_other_streams(facts: Facts) -> Iterator[_ReadyTime]:
    """Yields the times in which a stream's next kernel was ready while only other streams ran."""
    ready = np.maximum(facts.arrived_ns, facts.free_ns)
    late = (facts.start_ns - ready > _NEXT_NS) & ~_ends_idle_time(facts)
    for launch in np.flatnonzero(late).tolist():
        yield _ReadyTime(launch, float(ready[launch]), float(facts.start_ns[launch]))


def _ends_idle_time(facts: Facts) -> BoolArray:
    """Returns a mask of the launches that started when no kernel ran."""
    order = np.argsort(facts.start_ns, kind="stable")
    until = np.maximum.accumulate(np.append(0, facts.end_ns[order]))[:-1]
    is_idle = np.empty(len(order), np.bool_)
    is_idle[order] = facts.start_ns[order] - until > _NEXT_NS
    return is_idle


def _behind_own_stream(facts: Facts) -> Iterator[_ReadyTime]:
    """Yields the times of launches that waited for work of their stream that left SMs idle."""
    moved = facts.program.transfers
    held = facts.start_ns - facts.free_ns <= _NEXT_NS  # else something else kept it
    for launch in np.flatnonzero(~_ends_idle_time(facts) & held).tolist():
        prior = int(facts.before[launch])
        if prior == NOTHING or any(facts.is_collective(k) for k in (launch, prior) if k >= 0):
            continue
        began = moved["start_ns"][-2 - prior] if prior < 0 else facts.start_ns[prior]
        begin = max(float(facts.arrived_ns[launch]), float(began))
        end = float(min(facts.free_ns[launch], facts.start_ns[launch]))
        if end - begin > _MIN_GAP_NS:
            yield _ReadyTime(launch, begin, end, prior)


def _order_cause(facts: Facts, launch: int, before: int) -> str:
    """Returns why a launch must follow another one: ``stream``, ``node`` or ``legacy_stream``."""
    if before < 0:
        return "stream"
    if facts.event[launch] == facts.event[before]:
        return "node"
    stream, stream_before = (facts.stream_of(number) for number in (launch, before))
    return "stream" if stream == stream_before else "legacy_stream"
