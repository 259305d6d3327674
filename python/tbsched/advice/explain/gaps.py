"""The times in which the GPU could have done more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tbsched.advice.explain.causes import causes_of
from tbsched.advice.explain.explanation import Cause, Gap
from tbsched.advice.explain.facts import NOTHING, Facts


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
    order = np.argsort(facts.start_ns, kind="stable")
    until = np.maximum.accumulate(np.append(0, facts.end_ns[order]))[:-1]
    latest = np.empty_like(until)  # when all that started before had ended
    latest[order] = until
    late = facts.start_ns - facts.free_ns
    is_gap = (late > threshold_ns) & (facts.start_ns - latest <= threshold_ns)
    is_gap &= (facts.before != NOTHING) | (facts.start_ns - facts.arrived_ns > threshold_ns)
    for launch in np.flatnonzero(is_gap).tolist():
        begin = int(facts.free_ns[launch])
        if facts.before[launch] == NOTHING:
            begin = int(facts.arrived_ns[launch])
        yield _gap(facts, "stream", launch, begin, int(facts.start_ns[launch]))


def _behind_others(facts: Facts, threshold_ns: float) -> Iterator[Gap]:
    """It waited for a kernel before it in its stream, which did not need all SMs."""
    has = facts.before >= 0
    before = np.maximum(facts.before, 0)
    begin = np.maximum(facts.arrived_ns, facts.start_ns[before])
    waited = facts.end_ns[before] - begin
    for launch in np.flatnonzero(has & (waited > threshold_ns)).tolist():
        own = int(before[launch])
        cost = float(waited[launch]) * facts.idle_share(own)
        if cost > threshold_ns:
            cause = Cause(_of_order(facts, launch, own), float(waited[launch]) / 1e9, own)
            first, last = float(begin[launch]) / 1e9, int(facts.end_ns[own]) / 1e9
            yield Gap("order", launch, first, last, cost / 1e9, (cause,))


def _of_order(facts: Facts, launch: int, before: int) -> str:
    """What makes a launch follow another one."""
    if facts.event[launch] == facts.event[before]:
        return "node"
    one, other = (facts.stream_of(number) for number in (launch, before))
    return "stream" if one == other else "legacy_stream"
