"""Why the launch at the end of a gap did not start sooner."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from tbsched.advice.account.idle import UNEXPLAINED
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import NOTHING, Facts
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.as_measured import alone
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.predict import predict
from tbsched.program.events.launch import Launch
from tbsched.program.sequence import Sequence

# Differences between measured and predicted waits that need no explanation: the noise of a GPU.
_NOISE_NS, _NOISE_SHARE = 2000, 0.1
# Causes of waits that precede the wait for room.
_BEFORE_READY = ("stream", "legacy_stream", "event", "value", "node", "hardware_queue")
_MAX_KERNELS_EXAMINED = 8  # kernels that are examined per gap: those that ran longest in it
_AFTER_NS = 5000  # a launch waited for another one's end if it starts within this time


def causes_of(facts: Facts, launch: int, begin_ns: float, end_ns: float) -> tuple[Cause, ...]:
    """Returns why an arrived launch did not start between two times in ns, the longest part first.

    It was on the GPU by then. The prediction says what it waited for. Where it would not have
    waited, kernels that were measured to run then may have left it no room. Else nothing explains
    the gap.
    """
    shares: dict[tuple[str, int], float] = defaultdict(float)
    rest = (
        end_ns
        - begin_ns
        - _add_predicted_waits(facts, launch, (begin_ns, end_ns), begin_ns, shares)
    )
    noise = max(_NOISE_NS, _NOISE_SHARE * (end_ns - begin_ns))
    if rest > noise:
        ready = begin_ns + sum(ns for (cause, _), ns in shares.items() if cause in _BEFORE_READY)
        for cause, behind, ns in _blocking_kernels(facts, launch, ready, end_ns):
            shares[cause, behind] += min(ns, rest)
            rest -= min(ns, rest)
    if rest > noise or not shares:
        shares[UNEXPLAINED, NOTHING] += rest
    parts = [(cause, float(ns) / 1e9, behind) for (cause, behind), ns in shares.items() if ns > 0]
    return tuple(sorted((Cause(*part) for part in parts), key=lambda part: -part.seconds))


def _add_predicted_waits(
    facts: Facts, launch: int, gap: tuple[float, float], arrived: float,
    shares: dict[tuple[str, int], float],
) -> float:  # fmt: skip
    """Adds predicted causes of a launch's wait to ``shares``; returns their sum in ns.

    The predicted start is put on the measured one, so of a longer predicted wait only the end
    counts. A wait for a launch counts until that one has ended on the GPU.
    """
    rows = facts.prediction.waits
    assert rows is not None  # predictions with durations have waits
    first, last = np.searchsorted(facts.waits, [launch, launch + 1])
    begin_ns, end_ns = gap
    until = int(facts.predicted_ns[launch])
    since = until - (end_ns - arrived)
    explained = 0.0
    own = rows[first:last]
    columns = (own[key].tolist() for key in ("begin_ns", "end_ns", "cause", "behind"))
    for began, ended, cause, behind in zip(*columns, strict=True):
        ns = float(min(ended, until) - max(began, since))
        if behind >= 0:
            ns = min(ns, facts.end_ns[behind] + _AFTER_NS - begin_ns)
        if ns > 0:
            shares[cause, behind] += ns
            explained += ns
    return explained


def _blocking_kernels(
    facts: Facts, launch: int, begin_ns: float, end_ns: float
) -> Iterator[tuple[str, int, float]]:
    """Yields the parts of a gap in which a measured kernel left the launch no room.

    The model has several launches that become ready together start in one order, and the GPU in
    another one. So each kernel that was measured to run in the gap is asked by itself: would the
    launch start beside it?

    Yields:
        The cause, the other launch, and for how many nanoseconds of the gap.
    """
    start, end = facts.start_ns, facts.end_ns
    ran_ns = np.minimum(end, end_ns) - np.maximum(start, begin_ns)
    ran_ns[launch] = 0
    beside = np.argsort(-ran_ns, kind="stable")[:_MAX_KERNELS_EXAMINED]
    until = begin_ns
    launches = facts.program.sequence.launches
    for other in sorted(beside[ran_ns[beside] > 0].tolist(), key=lambda k: int(start[k])):
        started = float(start[other])
        for cause, since_ns, to_ns in _predicted_waits_behind(
            facts.spec, launches[other], launches[launch]
        ):
            first, last = max(until, started + since_ns), min(end_ns, started + to_ns)
            if last > first:
                yield cause, other, last - first
                until = last


@functools.lru_cache(maxsize=1024)
def _predicted_waits_behind(
    spec: DeviceSpec, first_launch: Launch, second_launch: Launch
) -> tuple[tuple[str, int, int], ...]:
    """Returns cause, begin and end (ns) of the waits of a launch that arrives behind another."""
    both = merged(Sequence([alone(first_launch), alone(second_launch)]), spec)
    trace = predict(both, spec, issue_times=(0.0, 0.0))
    rows = trace.waits
    first = trace[0].start_ns
    assert rows is not None
    assert first is not None  # predictions with durations have times
    own = rows[(rows["launch"] == 1) & (rows["end_ns"] > first.min())]
    columns = (own["cause"], own["begin_ns"] - first.min(), own["end_ns"] - first.min())
    return tuple(zip(*(column.tolist() for column in columns), strict=True))
