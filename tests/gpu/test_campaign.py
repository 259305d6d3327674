"""Campaigns on a real H200: the model agrees, and wrong predictors are caught and shrunk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tbsched.campaigns import fuzz, record
from tbsched.launcher.observe import Gpu
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.files import load_traces

pytestmark = pytest.mark.tbsched_gpu


def test_the_model_agrees_with_the_gpu(hopper: Gpu) -> None:
    report = fuzz(hopper, "h200", max_examples=2000, max_seconds=60, seed=20, progress=False)
    assert not report.counterexamples, report
    assert len(report.unstable) <= report.examples // 100, report
    assert report.occupancy == report.launches, report


@pytest.mark.parametrize("level", ["occupancy", "exact"])
def test_the_model_agrees_with_a_gpu_that_is_kept_busy(hopper: Gpu, level: str) -> None:
    report = fuzz(
        hopper, "h200", draw="native", level=level, max_examples=5000, max_seconds=60, seed=23,
        progress=False,
    )  # fmt: skip
    assert not report.counterexamples, report
    assert len(report.unstable) <= report.examples // 100, report
    assert report.occupancy == report.launches, report


@pytest.mark.parametrize(
    ("predictor", "policy"),
    [("h200-no-warp-skip", None), ("h200-paper-order", None), ("h200", "round_robin")],
)
def test_a_wrong_predictor_is_caught_and_shrunk(
    hopper: Gpu, predictor: str, policy: str | None
) -> None:
    report = fuzz(
        hopper, predictor, policy, max_seconds=40, shrink_seconds=20, seed=21, progress=False
    )
    assert len(report.counterexamples) == 1, report
    assert report.counterexamples[0].shrunk, report
    assert len(report.counterexamples[0].sequence.launches) <= 3, report
    assert report.seconds < 60, report


def test_a_recording_repeats(hopper: Gpu, tmp_path: Path) -> None:
    report = record(hopper, tmp_path / "r.jsonl", 200, repeats=2, seed=22, progress=False)
    traces = load_traces(tmp_path / "r.jsonl")
    assert len(traces) == report.examples - len(report.unstable) or len(traces) == report.examples
    assert len(report.unstable) <= 2, report


def test_the_fixture_asserts_agreement(hopper: Gpu, assert_agrees: object) -> None:
    assert callable(assert_agrees)
    assert_agrees(Sequence([Launch(132, 256, 32, carveout=100)]))
