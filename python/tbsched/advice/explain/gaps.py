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

_MOST = 1000  # gaps, the longest ones
_LEAST_NS = 1000  # shorter ones are the noise of clocks
_NEXT_NS = 10_000  # within which a kernel starts that waited for the end of others


def gaps_of(facts: Facts) -> list[Gap]:
    """Returns the longest gaps that overlap with running kernels."""
    ready = [*_in_streams(facts), *_behind_others(facts)]
    ready.sort(key=lambda each: each.begin - each.end)
    found = [_gap(facts, each) for each in ready[:_MOST]]
    costs = shared_costs(facts, found)
    gpu = int(facts.account.activity.work["gpu"][int(facts.program.measured["work"][0])])
    return [
        replace(
            gap, cost=cost, name=facts.program.sequence.launches[gap.launch].name or "", gpu=gpu
        )
        for gap, cost in zip(found, costs, strict=True)
        if cost > 0
    ]


class _Ready(NamedTuple):
    """A time in which a launch was ready, and did not run; ``behind``: what ran in its stream."""

    launch: int
    begin: float
    end: float
    behind: int = NOTHING


def _gap(facts: Facts, ready: _Ready) -> Gap:
    """Returns the gap of a launch, whose cost is not known yet."""
    launch, begin, end, behind = ready
    if behind == NOTHING:
        kind, causes = "stream", causes_of(facts, launch, begin, end)
    else:
        kind = "order"
        causes = (Cause(_of_order(facts, launch, behind), (end - begin) / 1e9, behind),)
    return Gap(kind, launch, begin / 1e9, end / 1e9, 0.0, causes)


def _in_streams(facts: Facts) -> Iterator[_Ready]:
    """Yields kernels of other streams ran; the next one of this stream was ready, but did not."""
    ready = np.maximum(facts.arrived_ns, facts.free_ns)
    late = (facts.start_ns - ready > _NEXT_NS) & ~_ends_idle(facts)
    for launch in np.flatnonzero(late).tolist():
        yield _Ready(launch, float(ready[launch]), float(facts.start_ns[launch]))


def _ends_idle(facts: Facts) -> BoolArray:
    """Returns a mask of the launches before whose start no kernel ran."""
    order = np.argsort(facts.start_ns, kind="stable")
    until = np.maximum.accumulate(np.append(0, facts.end_ns[order]))[:-1]
    found = np.empty(len(order), np.bool_)
    found[order] = facts.start_ns[order] - until > _NEXT_NS
    return found


def _behind_others(facts: Facts) -> Iterator[_Ready]:
    """Yields launches that waited for work before them in their stream that left SMs idle."""
    moved = facts.program.transfers
    held = facts.start_ns - facts.free_ns <= _NEXT_NS  # else something else kept it
    for launch in np.flatnonzero(~_ends_idle(facts) & held).tolist():
        own = int(facts.before[launch])
        if own == NOTHING or facts.is_collective(launch) or (own >= 0 and facts.is_collective(own)):
            continue
        began = moved["start_ns"][-2 - own] if own < 0 else facts.start_ns[own]
        begin = max(float(facts.arrived_ns[launch]), float(began))
        end = float(min(facts.free_ns[launch], facts.start_ns[launch]))
        if end - begin > _LEAST_NS:
            yield _Ready(launch, begin, end, own)


def _of_order(facts: Facts, launch: int, before: int) -> str:
    """Returns why a launch follows another one."""
    if before < 0:
        return "stream"
    if facts.event[launch] == facts.event[before]:
        return "node"
    one, other = (facts.stream_of(number) for number in (launch, before))
    return "stream" if one == other else "legacy_stream"
