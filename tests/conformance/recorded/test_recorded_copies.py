"""Copies and memsets that an H200 and an H100 ran, against the model: in graphs, and in streams.

The values of the model are from the recordings of the H200. Those of the H100 were looked at, too.
Nobody looked at the fresh programs before the model was as it is.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from conformance.recorded.timed import late_ns, share_of_pairs, starts_ns
from helpers import ROOT
from tbsched.comparison.times import compare_times
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict, predict_as_recorded
from tbsched.traces.files import load_traces
from tbsched.traces.timeline import span_of
from tbsched.traces.trace import Trace

TRACES = ROOT / "tests" / "traces"
WAYS = TRACES / "ways"
STREAMS = device("h200")
# The recorder made such calls right before each program, so none of them is a first one.
PRACTISED = device("h200-practised-hosts")
# These kernels write to the memory of the GPU alone. Those of ``tb.observe`` also write to the
# host's, and are over 0.2 us later.
H200 = replace(device("h200"), node_latency_ns=300, relay_ns=380)


@cache
def recorded(name: str) -> list[Trace]:
    return load_traces(WAYS / f"copies-{name}.jsonl.xz")


@pytest.mark.parametrize(("name", "traces"), [("h200", 180), ("h100", 198)])
def test_launches_start_around_copies_as_recorded(name: str, traces: int) -> None:
    found = recorded(name)
    assert len(found) == traces
    assert share_of_pairs(found, H200) > 0.99
    late = late_ns(found, H200)
    assert np.median(late) < 250
    assert np.mean(late < 3000) > 0.87
    assert np.mean(late) < 1320


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
    assert late_ns(found, replace(H200, **other)).mean() > 1.1 * late_ns(found, H200).mean()


# -- both directions at once ----------------------------------------------------------------------


def behind_copies_us(trace: Trace) -> list[float]:
    """Returns the times from a launch's end to the next one's start with a copy in between."""
    of_stream: dict[Any, list[int]] = {}
    for number, launch in enumerate(trace.sequence.launches):
        of_stream.setdefault(launch.stream, []).append(number)
    spans = [span_of(number, placement) for number, placement in enumerate(trace)]
    pairs = [own for own in of_stream.values() if len(own) == 2]
    return [(spans[b][0] - spans[a][1]) / 1e3 for a, b in pairs]


def both_ways(gpu: str, spec: DeviceSpec) -> dict[str, Any]:
    """By case, the median of three runs: recorded and predicted, a column for each direction."""
    found: dict[str, list[Any]] = {}
    for trace in load_traces(WAYS / f"both-ways-{gpu}.jsonl.xz"):
        both = [behind_copies_us(x) for x in (trace, predict_as_recorded(trace, spec))]
        found.setdefault(trace.id, []).append(both)
    return {case: np.median(runs, axis=0) for case, runs in found.items()}


@pytest.mark.parametrize("gpu", ["h200", "h100"])
def test_copies_both_ways_slow_each_other_down_as_recorded(gpu: str) -> None:
    found = both_ways(gpu, device(gpu))
    assert len(found) == 14
    off = {case: predicted / seen - 1 for case, (seen, predicted) in found.items()}
    assert np.abs(np.concatenate([*off.values()])).max() < 0.1
    assert np.median(np.abs(np.concatenate([*off.values()]))) < 0.02
    alone = both_ways(gpu, device(f"{gpu}-both-ways-as-alone"))
    for case in ("pair-16M-16M-0", "pair-64M-64M-0"):
        seen, predicted = alone[case]
        assert (predicted / seen - 1).max() < -0.05
        assert np.abs(off[case]).max() < 0.05


# -- in streams -----------------------------------------------------------------------------------


@cache
def cases() -> dict[str, list[Trace]]:
    """Three runs of each case, by its id."""
    found: dict[str, list[Trace]] = {}
    for trace in load_traces(WAYS / "transfers-h200.jsonl.xz"):
        found.setdefault(trace.id, []).append(trace)
    return found


@cache
def fresh(name: str) -> list[Trace]:
    return load_traces(TRACES / "ways-holdout" / f"transfers-{name}.jsonl.xz")


def late_us(traces: list[Trace], spec: DeviceSpec = STREAMS) -> float:
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


@pytest.mark.parametrize(("name", "share"), [("h200", 0.98), ("h100", 0.975)])
def test_fresh_programs_overlap_as_recorded(name: str, share: float) -> None:
    traces = fresh(name)
    assert len(traces) == 150
    diffs = [compare_times(predict_as_recorded(trace, STREAMS), trace) for trace in traces]
    assert sum(d.pairs_agreeing for d in diffs) / sum(d.pairs for d in diffs) > share


@pytest.mark.parametrize(("name", "share"), [("h200", 0.98), ("h100", 0.97)])
def test_they_do_if_only_the_gaps_between_calls_are_known(name: str, share: float) -> None:
    diffs = [
        compare_times(predict(trace.sequence, PRACTISED, host=trace.host_gaps), trace)
        for trace in fresh(name)
    ]
    assert sum(d.pairs_agreeing for d in diffs) / sum(d.pairs for d in diffs) > share


def test_channels_matter_in_fresh_programs() -> None:
    traces = fresh("h200")[::3]

    def off(spec: DeviceSpec) -> float:
        return float(late_ns(traces, spec).mean())

    assert off(replace(STREAMS, copy_channels=1)) > 1.1 * off(STREAMS)
