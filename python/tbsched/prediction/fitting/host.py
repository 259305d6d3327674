"""When a host calls, under a profiler that makes its calls longer."""

from __future__ import annotations

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.issued import IssuedCalls
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.predict import predict_launches
from tbsched.program.program import Program

_PREDICTIONS = 4
_NEAR_NS = 50


def fitted_host(program: Program, spec: DeviceSpec) -> tuple[tuple[float, ...], float]:
    """Returns seconds between calls, one per event, with which launches are predicted to be issued
    when they were measured to be.

    What is left of a call that a profiler makes longer belongs to the gap before it. What a call
    waits for is predicted: no gap makes up for a wait that is predicted to be too long.

    Returns:
        The gaps in seconds, one per event; and by how many nanoseconds the gap before a launch
        grew, at the median. Without times of calls in the profile: the given gaps, and 0.
    """
    calls = IssuedCalls.of(program, spec)
    if calls is None:
        return program.host, 0.0
    issued_ns = np.rint(calls.issued_ns - calls.issued_ns.min())
    given = np.rint(np.array(program.host) * 1e9)
    gaps = given.copy()
    sequence = merged(program.sequence, spec)
    for _ in range(_PREDICTIONS):
        issue_times = predict_launches(sequence, spec, host=(gaps / 1e9).tolist()).issue_times
        assert issue_times is not None
        predicted = np.rint(np.array(issue_times)[calls.first] * 1e9) + calls.within_ns
        late = issued_ns - (predicted - predicted.min())
        more = late - np.where(calls.previous >= 0, late[calls.previous], 0)
        if np.abs(more).max() <= _NEAR_NS:
            break
        gaps[calls.event] = np.maximum(gaps[calls.event] + more, 0)
    return tuple((gaps / 1e9).tolist()), float(np.median((gaps - given)[calls.event]))
