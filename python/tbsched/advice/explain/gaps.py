"""The times in which the GPU could have done more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tbsched.advice.explain.causes import causes_of
from tbsched.advice.explain.explanation import Cause, Gap
from tbsched.advice.explain.facts import NOTHING, Facts

BoolArray: TypeAlias = npt.NDArray[np.bool_]


def gaps_of(facts: Facts, threshold_ns: float) -> tuple[Gap, ...]:
    """The gaps that cost more than so much, the most costly first."""
    found = [
        *_idle(facts, threshold_ns), *_in_streams(facts, threshold_ns),
        *_behind_others(facts, threshold_ns),
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda gap: (-gap.cost, gap.begin, gap.kind)))


def _gap(facts: Facts, kind: str, launch: int, begin: float, end: float) -> Gap:
    causes = causes_of(facts, launch, begin, end)
    return Gap(kind, launch, begin / 1e9, end / 1e9, (end - begin) / 1e9, causes)


def _idle(facts: Facts, threshold_ns: float) -> Iterator[Gap]:
    """No kernel ran."""
    order = np.argsort(facts.start_ns, kind="stable")
    start, end = facts.start_ns[order], facts.end_ns[order]
    until = np.maximum.accumulate(end)[:-1]
    for place in np.flatnonzero(start[1:] - until > threshold_ns).tolist():
        yield _gap(facts, "idle", int(order[place + 1]), int(until[place]), int(start[place + 1]))


def _in_streams(facts: Facts, threshold_ns: float) -> Iterator[Gap]:
    """Kernels of other streams ran, but the next one of this stream did not."""
    late = facts.start_ns - facts.free_ns > threshold_ns
    is_first = facts.before == NOTHING
    late &= ~is_first | (facts.start_ns - facts.arrived_ns > threshold_ns)
    for launch in np.flatnonzero(late & ~_ends_idle(facts, threshold_ns)).tolist():
        begin = facts.arrived_ns[launch] if is_first[launch] else facts.free_ns[launch]
        yield _gap(facts, "stream", launch, float(begin), int(facts.start_ns[launch]))


def _ends_idle(facts: Facts, threshold_ns: float) -> BoolArray:
    """Of each launch, whether no kernel ran before it started."""
    order = np.argsort(facts.start_ns, kind="stable")
    until = np.maximum.accumulate(np.append(0, facts.end_ns[order]))[:-1]
    found = np.empty(len(order), np.bool_)
    found[order] = facts.start_ns[order] - until > threshold_ns
    return found


def _behind_others(facts: Facts, threshold_ns: float) -> Iterator[Gap]:
    """It waited for work before it in its stream, which did not need all SMs."""
    moved = facts.program.transfers
    for launch in np.flatnonzero(~_ends_idle(facts, threshold_ns)).tolist():
        own = int(facts.before[launch])
        if own == NOTHING:
            continue
        began = moved["start_ns"][-2 - own] if own < 0 else facts.start_ns[own]
        begin, end = max(float(facts.arrived_ns[launch]), float(began)), int(facts.free_ns[launch])
        if end - begin <= threshold_ns:
            continue
        cost = (end - begin) * (1.0 if own < 0 else facts.idle_share(own))
        if cost > threshold_ns:
            cause = Cause(_of_order(facts, launch, own), (end - begin) / 1e9, own)
            yield Gap("order", launch, begin / 1e9, end / 1e9, cost / 1e9, (cause,))


def _of_order(facts: Facts, launch: int, before: int) -> str:
    """What makes a launch follow another one."""
    if before < 0:
        return "stream"
    if facts.event[launch] == facts.event[before]:
        return "node"
    one, other = (facts.stream_of(number) for number in (launch, before))
    return "stream" if one == other else "legacy_stream"
