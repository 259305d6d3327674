"""Why the launch at the end of a gap did not start sooner."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tbsched.advice.account.idle import UNEXPLAINED
from tbsched.advice.explain.beside import kept_out
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import NOTHING, Facts

# Differences between measured and predicted waits that need no explanation: the noise of a GPU.
_NOISE_NS, _NOISE_SHARE = 2000, 0.1
# Causes of waits that precede the wait for room.
_BEFORE_READY = ("stream", "legacy_stream", "event", "value", "node", "hardware_queue")
_AFTER_NS = 5000  # a launch waited for another one's end if it starts within this time


def causes_of(facts: Facts, launch: int, begin_ns: float, end_ns: float) -> tuple[Cause, ...]:
    """Why a launch did not start between two times, the longest part first.

    It was on the GPU by then. The prediction says what it waited for. Where it would not have
    waited, kernels that were measured to run then may have left it no room. Else nothing explains
    the gap.
    """
    shares: dict[tuple[str, int], float] = defaultdict(float)
    rest = end_ns - begin_ns - _waits(facts, launch, (begin_ns, end_ns), begin_ns, shares)
    noise = max(_NOISE_NS, _NOISE_SHARE * (end_ns - begin_ns))
    if rest > noise:
        ready = begin_ns + sum(ns for (cause, _), ns in shares.items() if cause in _BEFORE_READY)
        for cause, behind, ns in kept_out(facts, launch, ready, end_ns):
            shares[cause, behind] += min(ns, rest)
            rest -= min(ns, rest)
    if rest > noise or not shares:
        shares[UNEXPLAINED, NOTHING] += rest
    parts = [(cause, float(ns) / 1e9, behind) for (cause, behind), ns in shares.items() if ns > 0]
    return tuple(sorted((Cause(*part) for part in parts), key=lambda part: -part.seconds))


def _waits(
    facts: Facts,
    launch: int,
    gap: tuple[float, float],
    arrived: float,
    shares: dict[tuple[str, int], float],
) -> float:
    """Adds the predicted causes of the launch's wait on the GPU; returns how long they are, in ns.

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
