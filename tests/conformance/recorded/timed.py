"""How far timed recordings are from what is predicted of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tbsched.comparison.times import compare_times
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict_as_recorded
from tbsched.program.arrays import Float64Array
from tbsched.traces.timeline import span_of
from tbsched.traces.trace import Trace


def starts_ns(trace: Trace) -> Float64Array:
    """Returns the starts of the launches, from the first start of all."""
    starts = np.array([span_of(k, placement)[0] for k, placement in enumerate(trace)])
    return np.asarray(starts - starts.min(), np.float64)


def late_ns(traces: Iterable[Trace], spec: DeviceSpec) -> Float64Array:
    """Returns by how much later or sooner launches start than predicted."""
    apart = [starts_ns(predict_as_recorded(each, spec)) - starts_ns(each) for each in traces]
    return np.abs(np.concatenate(apart))


def share_of_pairs(traces: Iterable[Trace], spec: DeviceSpec) -> float:
    """Returns the share of pairs of launches that overlap in both, or in neither."""
    diffs = [compare_times(predict_as_recorded(each, spec), each) for each in traces]
    return sum(d.pairs_agreeing for d in diffs) / sum(d.pairs for d in diffs)
