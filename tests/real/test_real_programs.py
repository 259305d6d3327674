"""Recorded programs of PyTorch, CuPy, Triton and Numba, and how well they are predicted."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import tbsched as tb
from real.score import (
    Row,
    loaded,
    measured,
    names,
    overlaps,
    predicted,
    recording,
    scored,
    told,
)
from tbsched.prediction.fitting import durations
from tbsched.prediction.fitting.effort import THOROUGH
from tbsched.program.sequence import with_launches

RECORDINGS = Path(__file__).parent / "recordings"
ROUND_TRIP, AGAIN, CHANGED, OVERLAPS = 0.01, 0.05, 0.10, 0.95
GAIN = 0.2  # of the measured gain
BIG = 0.05  # of the makespan

# The quick ones, Kineto's of an H200 and captures of an H100; tests/real/score.py scores them all,
# and docs/explanation/real-programs.md shows what it finds.
SCORED = {
    "h200": ("cupy_carveout", "cupy_connections", "cupy_legacy_stream", "sync_in_loop"),
    "h100": ("cupy_carveout", "cupy_connections", "numba_streams", "sync_in_loop"),
}
# Programs whose largest gap a change removes, and what the change is called.
REMOVED = {
    "cupy_connections": "CUDA_DEVICE_MAX_CONNECTIONS",
    "cupy_legacy_stream": "non-blocking",
    "sync_in_loop": "without 2. (synchronisations|calls of aten::item|values that the host copies)",
}


@pytest.fixture(
    scope="module", params=[(gpu, name) for gpu, some in SCORED.items() for name in some], ids=str
)
def row(request: pytest.FixtureRequest) -> Row:
    gpu, name = request.param
    return scored(RECORDINGS / gpu, name, gpu)


def test_a_program_is_predicted_from_its_own_durations(row: Row) -> None:
    assert abs(row.again) <= ROUND_TRIP


def test_the_next_run_is_predicted(row: Row) -> None:
    assert abs(row.b) <= AGAIN
    assert row.pairs_b.both >= OVERLAPS * row.pairs_b.either


def test_the_changed_program_is_predicted(row: Row) -> None:
    assert abs(row.c) <= CHANGED


@pytest.mark.parametrize(("name", "change"), REMOVED.items())
@pytest.mark.parametrize("gpu", SCORED)
def test_the_change_that_helps_most_brings_what_it_brought_on_the_gpu(
    gpu: str, name: str, change: str
) -> None:
    a, spec = told(name, "a", loaded(recording(RECORDINGS / gpu, name, "a")), tb.device(gpu))
    c = loaded(recording(RECORDINGS / gpu, name, "c"))
    explained = tb.explain(a, spec)
    best = explained.changes[0]
    assert re.search(change, best.what)
    gain = measured(a).makespan - measured(c).makespan
    assert explained.makespan * 1e9 - best.makespan * 1e9 == pytest.approx(gain, rel=GAIN)
    for gap in explained.gaps:
        if gap.cost > BIG * explained.makespan:
            assert gap.causes[0].cause != "unexplained"


def test_launches_that_wait_for_the_same_kernel_start_in_the_order_of_the_profile() -> None:
    """A memset or a softmax goes first in triton_mixed, as it was in the profile."""
    folder = RECORDINGS / "h100"
    assert scored(folder, "triton_mixed", "h100").all_b == (3, 3)
    spec = tb.device("h100")
    a = loaded(recording(folder, "triton_mixed", "a"))
    fitted = tb.fit_durations(a, spec)
    undelayed = [replace(launch, delay=None) for launch in fitted.sequence.launches]
    sequence = with_launches(fitted.sequence, undelayed)
    b = measured(loaded(recording(folder, "triton_mixed", "b")))
    other = predicted(sequence, spec, fitted.host, fitted.kernel_overhead)
    assert overlaps(measured(a), b, other) != (3, 3)


def test_kernels_that_fill_the_gpu_overlap_as_in_the_profile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Products of gemm_streams fill the GPU, and each waits for the blocks of those before it."""
    folder = RECORDINGS / "h100"
    pairs = scored(folder, "gemm_streams", "h100").pairs_b
    assert pairs.both >= OVERLAPS * pairs.either
    monkeypatch.setattr(
        durations,
        "THOROUGH",
        THOROUGH._replace(strategies=tuple(x for x in THOROUGH.strategies if not x.in_order)),
    )
    others = scored(folder, "gemm_streams", "h100").pairs_b
    assert others.both < 0.9 * others.either


def test_every_recording_has_its_three_runs() -> None:
    for folder in RECORDINGS.iterdir():
        for name in names(folder):
            assert len(list(folder.glob(f"{name}-[abc].*"))) == 3
