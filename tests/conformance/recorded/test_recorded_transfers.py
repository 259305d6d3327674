"""Copies and memsets in streams that an H200 ran, case by case, and fresh programs with them.

The model is from the H200's cases and from 150 more programs. Nobody looked at those of the
hold-out before the model was as it is.
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

TRACES = ROOT / "tests" / "traces"
H200 = device("h200")


@cache
def cases() -> dict[str, list[Trace]]:
    """Three runs of each case, by its id."""
    found: dict[str, list[Trace]] = {}
    for trace in load_traces(TRACES / "ways" / "transfers-h200.jsonl.xz"):
        found.setdefault(trace.id, []).append(trace)
    return found


@cache
def fresh(name: str) -> list[Trace]:
    return load_traces(TRACES / "ways-holdout" / f"transfers-{name}.jsonl.xz")


def starts_ns(trace: Trace) -> Any:
    """Of the launches, from the first start of all."""
    starts = np.array([span_of(k, placement)[0] for k, placement in enumerate(trace)])
    return starts - starts.min()


def late_us(traces: list[Trace], spec: DeviceSpec = H200) -> float:
    """By how much the launch that is furthest off is so, in the median run."""
    return float(
        np.median(
            [
                np.abs(starts_ns(predict_as_recorded(trace, spec)) - starts_ns(trace)).max() / 1e3
                for trace in traces
            ]
        )
    )


# What shows a mechanism; by how much the model is off at most, and without it at least.
SHOWN = [
    ("A-Ux3-ev0", "no-copy-engines", 10, 600),
    ("A-Dx3-ev0", "no-copy-engines", 10, 600),
    ("C-U1024k-4-U", "copy-channel-per-stream", 25, 380),
    ("C-D1024k-4-D", "copy-channel-per-stream", 80, 380),
    ("F-warps-X-67108864", "no-copy-kernels", 5, 30),
    ("F-warps-M-67108864", "no-copy-kernels", 5, 15),
    ("D-D-1048576", "no-copy-wake", 3, 5),
    ("D-U-65536", "no-copy-wake", 3, 4),
]


@pytest.mark.parametrize(("case", "ablation", "most", "least"), SHOWN)
def test_the_case_of_a_mechanism_is_as_recorded(
    case: str, ablation: str, most: float, least: float
) -> None:
    assert late_us(cases()[case]) < most
    assert late_us(cases()[case], device(f"h200-{ablation}")) > least


def test_all_cases_are_near() -> None:
    late = {name: late_us(traces) for name, traces in cases().items()}
    assert len(late) > 70
    assert np.median([*late.values()]) < 3


@pytest.mark.parametrize(("name", "share"), [("h200", 0.985), ("h100", 0.98)])
def test_fresh_programs_overlap_as_recorded(name: str, share: float) -> None:
    traces = fresh(name)
    assert len(traces) == 150
    diffs = [compare_times(predict_as_recorded(trace, H200), trace) for trace in traces]
    assert sum(d.pairs_agreeing for d in diffs) / sum(d.pairs for d in diffs) > share


def test_channels_matter_in_fresh_programs() -> None:
    traces = fresh("h200")[::3]

    def off(spec: DeviceSpec) -> float:
        late = [starts_ns(predict_as_recorded(trace, spec)) - starts_ns(trace) for trace in traces]
        return float(np.abs(np.concatenate(late)).mean())

    assert off(replace(H200, copy_channels=1)) > 1.1 * off(H200)
