"""When a host calls, under a profiler that makes its calls longer."""

from __future__ import annotations

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.arrays import Int64Array
from tbsched.program.program import Program

_PREDICTIONS = 4
_NEAR_NS = 50


def fitted_host(program: Program, spec: DeviceSpec) -> tuple[tuple[float, ...], float]:
    """Gaps with which launch calls are predicted when they were made.

    A call of the profile lasts longer than one of the device without a profiler, and the next one
    comes later by that. What a call waits for is predicted: no gap makes up for a wait that is
    predicted to be too long.

    Returns:
        The gaps in seconds, one per event; and by how many nanoseconds that of a launch grew, at
        the median. They are as given if the profile does not say when calls were made.
    """
    called = program.measured["call_ns"]
    if not len(called) or (called < 0).any():
        return program.host, 0.0
    event, first, previous = _calls(program)
    given = np.rint(np.array(program.host) * 1e9).astype(np.int64)
    gaps = given.copy()
    measured = called[first] - called[first].min()
    for _ in range(_PREDICTIONS):
        found = predict(program.sequence, spec, host=(gaps / 1e9).tolist()).issue_times
        assert found is not None
        predicted = np.rint(np.array(found)[first] * 1e9).astype(np.int64)
        # Of a thread's first call the gap counts from the first call of all.
        late = measured - (predicted - predicted.min())
        more = late - np.where(previous >= 0, late[previous], 0)
        if np.abs(more).max() <= _NEAR_NS:
            break
        gaps[event] = np.maximum(gaps[event] + more, 0)
    return tuple((gaps / 1e9).tolist()), float(np.median(gaps[event] - given[event]))


def _calls(program: Program) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Of each event that launches, its place, its first launch, and the row of the one before it.

    Of its host thread; -1: it is the first.
    """
    rows: list[tuple[int, int, int]] = []
    last: dict[int, int] = {}
    number = 0
    for place, each in enumerate(program.sequence):
        if each.launches:
            host = getattr(each, "host", 0)
            rows.append((place, number, last.get(host, -1)))
            last[host] = len(rows) - 1
        number += len(each.launches)
    event, first, previous = np.array(rows, np.int64).reshape(-1, 3).T
    return event, first, previous
