"""When blocks ran on an H200 and on an H100: programs that they ran, against the model.

``programs`` and ``orders`` were recorded after the model was made and are only scored; the others
are what it was made from. A program is predicted from its times of issue and how long its blocks
ran.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from helpers import ROOT
from tbsched.comparison.times import TimeDiff, compare_times
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict_as_recorded
from tbsched.traces.files import load_traces
from tbsched.traces.timeline import span_of
from tbsched.traces.trace import Trace

TIMED = ROOT / "tests" / "traces" / "h200-timed"
H200 = device("h200")
TIMED_H100 = ROOT / "tests" / "traces" / "h100-timed"
H100 = device("h100")


@dataclass(frozen=True)
class Score:
    """The score of several programs together."""

    diffs: list[TimeDiff]

    @property
    def pairs(self) -> float:
        return sum(d.pairs_agreeing for d in self.diffs) / sum(d.pairs for d in self.diffs)

    @property
    def starts(self) -> float:
        return sum(d.starts_agreeing for d in self.diffs) / sum(d.blocks for d in self.diffs)

    def makespan(self, percentile: float) -> float:
        errors = [abs(diff.makespan_error) for diff in self.diffs]
        return float(np.percentile(errors, percentile))


def score(traces: Iterable[Trace], spec: DeviceSpec = H200) -> Score:
    return Score([compare_times(predict_as_recorded(trace, spec), trace) for trace in traces])


@functools.cache
def queues(spec: DeviceSpec = H200, every: int = 1) -> Score:
    return score(recorded_queues()[::every], spec)


@functools.cache
def recorded_queues() -> list[Trace]:
    return load_traces(TIMED / "queues.jsonl.xz")


def scores_of_programs(path: Path, spec: DeviceSpec) -> tuple[Score, Score]:
    """The model against the first run of each program, and the GPU's second run against it."""
    runs: dict[int, list[Trace]] = defaultdict(list)
    for trace in load_traces(path):
        runs[trace.extra["program"]].append(trace)
    itself = [compare_times(again, first) for first, again in runs.values()]
    return score((first for first, _ in runs.values()), spec), Score(itself)


@pytest.fixture(scope="module")
def programs() -> tuple[Score, Score]:
    return scores_of_programs(TIMED / "programs.jsonl.xz", H200)


def test_queues_are_chosen_as_the_driver_chooses_them() -> None:
    assert len(queues().diffs) == 281
    assert queues().pairs > 0.995
    assert queues().starts > 0.99


@pytest.mark.parametrize("count", [1, 4, 128])
def test_another_number_of_queues_explains_less(count: int) -> None:
    assert queues(replace(H200, hardware_queues=count), every=3).pairs < 0.98


@pytest.mark.parametrize(("folder", "spec"), [(TIMED, H200), (TIMED_H100, H100)])
def test_directed_programs_answer_as_the_model_does(folder: Path, spec: DeviceSpec) -> None:
    by_question: dict[str, list[Trace]] = defaultdict(list)
    for trace in load_traces(folder / "directed.jsonl.xz"):
        by_question[trace.extra["question"]].append(trace)
    assert len(by_question) >= 13
    for question, runs in by_question.items():
        found = score(runs, spec)
        assert found.pairs > 0.98, question
        # Those come in an order that does not repeat.
        if "an event sets free" not in question:
            assert found.starts > 0.9, question


def test_programs_never_looked_at_run_as_predicted(programs: tuple[Score, Score]) -> None:
    found, itself = programs
    assert len(found.diffs) == 300
    assert found.pairs > 0.985
    assert found.pairs > itself.pairs - 0.005
    assert found.starts > itself.starts - 0.04
    assert found.makespan(50) < 0.02
    assert found.makespan(95) < 0.10


def test_an_h100_runs_programs_as_it_repeats_them() -> None:
    found, itself = scores_of_programs(TIMED_H100 / "programs.jsonl.xz", H100)
    assert len(found.diffs) == 40
    assert found.pairs > itself.pairs - 0.005
    assert found.starts > itself.starts - 0.01
    assert found.makespan(50) < 0.02


def test_programs_that_the_gpu_repeats_run_as_predicted(programs: tuple[Score, Score]) -> None:
    alike = Score(
        [
            diff
            for diff, itself in zip(programs[0].diffs, programs[1].diffs, strict=True)
            if itself.starts_agreeing >= 0.97 * itself.blocks
        ]
    )
    assert len(alike.diffs) > 150
    assert alike.pairs > 0.99
    assert alike.starts > 0.95


def test_without_the_launch_latency_queues_are_chosen_less_well() -> None:
    without = queues(replace(H200, launch_latency_ns=0), every=3)
    assert without.pairs < queues(every=3).pairs - 0.003


@pytest.mark.parametrize(
    "without",
    ["completion_latency_ns", "exit_latency_ns", "event_latency_ns", "queue_watch_ns",
     "launch_switch_ns"],
)  # fmt: skip
@pytest.mark.parametrize(("folder", "spec"), [(TIMED, H200), (TIMED_H100, H100)])
def test_without_a_latency_starts_are_further_off(
    folder: Path, spec: DeviceSpec, without: str
) -> None:
    assert error_ns(folder, replace(spec, **{without: 0})) > 1.005 * error_ns(folder, spec)


def test_within_the_legacy_stream_it_takes_no_longer_than_in_any_other() -> None:
    in_a_row = [
        trace
        for trace in load_traces(TIMED / "legacy.jsonl.xz")
        if {launch.stream for launch in trace.sequence.launches} == {"legacy"}
    ]
    assert len(in_a_row) == 5
    gaps = [gaps_ns(trace) for trace in in_a_row]
    predicted = [gaps_ns(predict_as_recorded(trace, H200)) for trace in in_a_row]
    assert abs(np.median(gaps) - np.median(predicted)) < 300


def gaps_ns(trace: Trace) -> list[int]:
    """From the last end of a launch to the first start of the next one."""
    spans = [span_of(number, placement) for number, placement in enumerate(trace)]
    return [begin - end for (_, end), (begin, _) in itertools.pairwise(spans)]


@functools.cache
def recorded_latencies(folder: Path) -> list[Trace]:
    return load_traces(folder / "latencies.jsonl.xz")


@functools.cache
def error_ns(folder: Path, spec: DeviceSpec) -> float:
    """Mean of how far launches' first starts are off, none counted as more than 10 us."""
    errors = []
    for trace in recorded_latencies(folder):
        starts = [
            np.array([p.start_ns.min() for p in one if p.start_ns is not None])
            for one in (trace, predict_as_recorded(trace, spec))
        ]
        off = np.abs((starts[0] - starts[0][0]) - (starts[1] - starts[1][0]))
        errors.append(np.minimum(off, 10_000))
    return float(np.concatenate(errors).mean())


def test_advised_orders_are_faster_and_ranks_are_as_predicted() -> None:
    sets: dict[int, dict[str, Trace]] = defaultdict(dict)
    for trace in load_traces(TIMED / "orders.jsonl.xz"):
        sets[trace.extra["set"]][trace.extra["role"]] = trace
    gains = [
        roles["given"].makespan / roles["advised"].makespan - 1
        for roles in sets.values()
        if {"given", "advised"} <= roles.keys()
    ]
    assert len(gains) == 60
    assert np.median(gains) > 0.05
    assert np.mean(np.array(gains) > -0.01) > 0.9
