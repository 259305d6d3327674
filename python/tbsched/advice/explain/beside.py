"""Which kernels that ran left a launch no room, whatever the prediction has them do when."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from tbsched.advice.explain.facts import Facts
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.as_measured import alone
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.predict import predict
from tbsched.program.events.launch import Launch
from tbsched.program.sequence import Sequence

_MOST = 8  # kernels that are examined per gap: those that ran longest in it


def kept_out(
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
    beside = np.argsort(-ran_ns, kind="stable")[:_MOST]
    until = begin_ns
    launches = facts.program.sequence.launches
    for other in sorted(beside[ran_ns[beside] > 0].tolist(), key=lambda k: int(start[k])):
        began = float(start[other])
        for cause, since_ns, to_ns in _waits_behind(facts.spec, launches[other], launches[launch]):
            first, last = max(until, began + since_ns), min(end_ns, began + to_ns)
            if last > first:
                yield cause, other, last - first
                until = last


@functools.lru_cache(maxsize=1024)
def _waits_behind(spec: DeviceSpec, one: Launch, other: Launch) -> tuple[tuple[str, int, int], ...]:
    """Returns the waits of a launch that arrives right after another one, since that started."""
    both = merged(Sequence([alone(one), alone(other)]), spec)
    trace = predict(both, spec, issue_times=(0.0, 0.0))
    rows = trace.waits
    first = trace[0].start_ns
    assert rows is not None
    assert first is not None  # predictions with durations have times
    own = rows[(rows["launch"] == 1) & (rows["end_ns"] > first.min())]
    columns = (own["cause"], own["begin_ns"] - first.min(), own["end_ns"] - first.min())
    return tuple(zip(*(column.tolist() for column in columns), strict=True))
