"""Copies and memsets in graphs that an H200 and an H100 ran, against the model.

The values of the model are from the recordings of the H200. Those of the H100 were looked at, too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from helpers import ROOT
from tbsched.comparison.times import compare_times
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict_as_recorded
from tbsched.traces.files import load_traces
from tbsched.traces.timeline import span_of
from tbsched.traces.trace import Trace

WAYS = ROOT / "tests" / "traces" / "ways"
# These kernels write to the memory of the GPU alone. Those of ``tb.observe`` also write to the
# host's, and are over 0.2 us later.
H200 = replace(device("h200"), node_latency_ns=300, relay_ns=380)


@cache
def recorded(name: str) -> list[Trace]:
    return load_traces(WAYS / f"copies-{name}.jsonl.xz")


def starts_ns(trace: Trace) -> Any:
    """Of the launches, from the first start of all."""
    starts = np.array([span_of(k, placement)[0] for k, placement in enumerate(trace)])
    return starts - starts.min()


def late_ns(traces: list[Trace], spec: DeviceSpec = H200) -> Any:
    """By how much launches start later than predicted, or sooner."""
    return np.concatenate(
        [np.abs(starts_ns(predict_as_recorded(trace, spec)) - starts_ns(trace)) for trace in traces]
    )


def share_of_pairs(traces: list[Trace]) -> float:
    """Of pairs of launches, those that overlap in both, or in neither."""
    diffs = [compare_times(predict_as_recorded(trace, H200), trace) for trace in traces]
    return sum(d.pairs_agreeing for d in diffs) / sum(d.pairs for d in diffs)


@pytest.mark.parametrize(("name", "traces"), [("h200", 180), ("h100", 198)])
def test_launches_start_around_copies_as_recorded(name: str, traces: int) -> None:
    found = recorded(name)
    assert len(found) == traces
    assert share_of_pairs(found) > 0.99
    late = late_ns(found)
    assert np.median(late) < 250
    assert np.mean(late < 3000) > 0.87
    assert np.mean(late) < 1300


@pytest.mark.parametrize(
    "other",
    [
        {"node_copy_latency_ns": 0},
        {"host_copy_bandwidth": 27_500},
        {"small_copy_bytes": 0},
        {"device_copy_bandwidth": 100_000},
        {"memset_bandwidth": 100_000},
        {"mechanisms": device("h200-no-copy-engines").mechanisms},
    ],
    ids=lambda other: next(iter(other)),
)
def test_with_other_values_they_start_at_other_times(other: dict[str, Any]) -> None:
    found = recorded("h200")[::4]
    assert late_ns(found, replace(H200, **other)).mean() > 1.1 * late_ns(found).mean()
