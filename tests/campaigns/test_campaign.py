"""Campaigns: what they count, keep, repeat and survive. Models play the GPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers import run_python
from tbsched.campaigns import ModelGpu, RecordedOracle, Report, SequenceOptions, fuzz, record
from tbsched.campaigns.judge import Judge
from tbsched.campaigns.shrinking import shrinker
from tbsched.campaigns.shrinking.narrower import narrower_suspects
from tbsched.campaigns.space.draws import Draws
from tbsched.comparison.compare import compare
from tbsched.comparison.verify import verify
from tbsched.errors import (
    CudaError,
    DeadlineExceeded,
    NoGpuError,
    SharedGpu,
    UnstableMeasurement,
)
from tbsched.hardware.catalogue import device
from tbsched.hardware.initial_state import InitialState
from tbsched.prediction.outcomes import outcomes
from tbsched.prediction.predict import predict, predict_as_recorded
from tbsched.program.partition import Partition
from tbsched.program.sequence import Launch, Release, Sequence
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace

RIGHT = "rtx3090"
WRONG = ("rtx3090", "first_fit")
ONE = predict(Sequence([Launch(1, 32, 32)]), RIGHT)


def campaign(oracle: object = RIGHT, *predictor: Any, **arguments: object) -> Report:
    settings: dict[str, object] = {"seed": 1, "max_examples": 200, "progress": False}
    return fuzz(oracle, *(predictor or WRONG), **{**settings, **arguments})  # type: ignore[arg-type]


class Disturbed:
    """The right model, but every ``nth`` observation raises or is wrong."""

    def __init__(self, nth: int, error: BaseException | None = None) -> None:
        self.nth = nth
        self.error = error
        self.calls = 0

    def observe(self, seq: Sequence) -> Trace:
        self.calls += 1
        if self.calls % self.nth:
            return predict(seq, RIGHT)
        if self.error is not None:
            raise self.error
        return predict(seq, *WRONG)


class SharedLater:
    """Wrong from the beginning; another process comes, and then Ctrl-C."""

    def __init__(self) -> None:
        self.calls = 0

    def observe(self, seq: Sequence) -> Trace:
        self.calls += 1
        if self.calls == 6:
            raise SharedGpu("another process uses this GPU")
        if self.calls == 8:
            raise KeyboardInterrupt
        return predict(seq, *WRONG)


# -- agreement and disagreement -------------------------------------------------------------------


def test_a_latent_state_of_another_device_is_refused() -> None:
    with pytest.raises(ValueError, match=r"initial_state: .*first_gpc=99.* is not one of h200"):
        campaign("h200", "h200", initial_state=InitialState(first_gpc=99))


def test_what_was_being_shrunk_when_another_process_came_is_not_reported() -> None:
    oracle = SharedLater()
    report = campaign(oracle, RIGHT)
    assert oracle.calls == 8
    assert (report.ended, report.counterexamples) == ("interrupted", ())
    assert report.disagreements == 1


def test_a_model_agrees_with_itself() -> None:
    report = campaign(RIGHT, RIGHT)
    assert (report.examples, report.disagreements, report.ended) == (200, 0, "examples")
    assert report.launches == report.occupancy == report.exact > 400
    assert report.blocks > report.launches
    assert not report.counterexamples


def test_a_wrong_predictor_is_caught_and_its_counterexample_shrunk() -> None:
    report = campaign()
    (found,) = report.counterexamples
    assert report.ended == "counterexamples"
    assert report.disagreements == 1
    assert report.occupancy < report.launches
    assert found.shrunk
    assert not found.replayed
    assert len(found.sequence.launches) <= 2
    assert not found.diff.occupancy
    assert compare(found.prediction, predict(found.sequence, *WRONG)).exact
    assert compare(found.observation, predict(found.sequence, RIGHT)).exact


def test_a_report_prints_its_numbers_and_its_counterexamples() -> None:
    text = str(campaign())
    assert "rtx3090/first_fit by occupancy" in text
    assert "  1 sequence disagrees, 1 distinct counterexample (" in text
    assert "seed 1" in text
    assert "def test_rtx3090_" in text


def test_exact_accepts_any_initial_state_and_occupancy_does_not_ask() -> None:
    spec = device("h200")
    oracle = ModelGpu(spec, initial_state=spec.initial_states()[-1])
    assert not campaign(oracle, "h200", level="exact").counterexamples
    (found,) = campaign(
        oracle, "h200", level="exact", initial_state=spec.initial_states()[0]
    ).counterexamples
    assert found.diff.occupancy
    assert not campaign(oracle, "h200", level="occupancy").counterexamples


def test_a_campaign_can_go_on_and_counts_each_counterexample_once() -> None:
    report = campaign(
        RIGHT, RIGHT, "round_robin", max_counterexamples=3, max_examples=300, shrink_seconds=2.0
    )
    sequences = [found.sequence for found in report.counterexamples]
    assert 2 <= len(sequences) <= 3
    assert len(set(sequences)) == len(sequences)
    assert report.disagreements >= len(sequences)


def test_counterexamples_of_one_cause_are_said_to_be_alike() -> None:
    report = campaign(
        "rtx3090", "rtx3090-free-warps", max_counterexamples=3, max_examples=2000, seed=1
    )
    first, second, third = report.counterexamples
    assert (first.like, second.like, third.like) == (None, None, second.id)
    assert "3 distinct counterexamples of 2 kinds" in str(report)
    assert "counterexample 3 (like 2): " in str(report)


def test_a_sequence_ends_where_it_is_predicted_that_the_gpu_is_full(tmp_path: Path) -> None:
    campaign(RIGHT, RIGHT, record=tmp_path / "short.jsonl", past_refusal=False)
    campaign(RIGHT, RIGHT, record=tmp_path / "long.jsonl", past_refusal=True)
    short, long = (load_traces(tmp_path / name) for name in ("short.jsonl", "long.jsonl"))

    def refused_early(traces: list[Trace]) -> bool:
        return any((p.smid < 0).any() for trace in traces for p in trace.placements[:-1])

    assert not refused_early(short)
    assert refused_early(long)


class Racing:
    """A GPU on which chance decides in which order blocks leave."""

    def __init__(self) -> None:
        self.calls = 0
        self.surprises = 0

    def observe(self, seq: Sequence) -> Trace:
        self.calls += 1
        several = outcomes(seq, RIGHT, races=4)
        found = several[self.calls % len(several)].trace
        self.surprises += not compare(predict(seq, RIGHT), found).occupancy
        return found


def test_how_a_race_ends_is_no_disagreement() -> None:
    gpu = Racing()
    assert campaign(gpu, RIGHT, past_refusal=True).counterexamples == ()
    assert gpu.surprises > 5


def test_a_held_prediction_agrees_with_its_own_replay_among_gaps_in_shared_memory() -> None:
    kernel = Launch(82, 32, 32, carveout=100)
    seq = Sequence(
        [
            replace(kernel, shared_memory=16000), kernel, kernel, Release(0),
            replace(kernel, blocks=1312), kernel, kernel, replace(kernel, shared_memory=6272),
            Release(3), replace(kernel, shared_memory=6784),
        ]
    )  # fmt: skip
    observed = ModelGpu(RIGHT).observe(seq)
    assert compare(predict_as_recorded(observed, RIGHT), observed).exact
    assert verify([observed], RIGHT).misses == ()


# -- seeds and limits -----------------------------------------------------------------------------


def test_a_seed_repeats_a_campaign_and_another_does_not(tmp_path: Path) -> None:
    def drawn(seed: int, name: str) -> list[Sequence]:
        campaign(RIGHT, RIGHT, seed=seed, max_examples=50, record=tmp_path / name)
        return [trace.sequence for trace in load_traces(tmp_path / name)]

    first = drawn(5, "a.jsonl")
    assert first == drawn(5, "b.jsonl")
    assert first != drawn(6, "c.jsonl")
    one, two = campaign(seed=5), campaign(seed=5)
    assert one.counterexamples[0].sequence == two.counterexamples[0].sequence
    assert one.examples == two.examples


def test_a_seed_is_drawn_and_reported() -> None:
    seed = campaign(RIGHT, RIGHT, seed=None, max_examples=1).seed
    assert 0 <= seed < 2**32


def test_a_campaign_ends_with_its_seconds() -> None:
    started = time.monotonic()
    report = campaign(RIGHT, RIGHT, max_seconds=0.3, max_examples=10**6)
    assert report.ended == "seconds"
    assert time.monotonic() - started < 5


def test_a_campaign_ends_when_there_is_nothing_more_to_draw() -> None:
    trace = predict(Sequence([Launch(1, 32, 32), Launch(2, 32, 32)]), RIGHT)
    report = campaign(RecordedOracle([trace]), RIGHT, max_examples=10_000)
    assert report.ended == "exhausted"
    assert 2 <= report.examples < 100


def test_recorded_traces_catch_a_wrong_predictor_and_shrink_to_a_prefix(tmp_path: Path) -> None:
    record(RIGHT, tmp_path / "r.jsonl", 100, predictor=RIGHT, seed=1, progress=False)
    traces = load_traces(tmp_path / "r.jsonl")
    assert not campaign(RecordedOracle(traces), RIGHT).counterexamples
    (found,) = campaign(RecordedOracle(traces)).counterexamples
    assert found.shrunk
    assert len(found.sequence.launches) == 1
    assert any(trace.sequence[: len(found.sequence)] == found.sequence for trace in traces)


@pytest.mark.parametrize("draw", ["native", "hypothesis"])
def test_until_full_ends_each_sequence_with_the_first_launch_that_does_not_fit(
    tmp_path: Path, draw: str
) -> None:
    path = tmp_path / "r.jsonl"
    record(RIGHT, path, 40, predictor=RIGHT, until_full=True, draw=draw, seed=1, progress=False)
    traces = load_traces(path)
    assert len(traces) == 40
    assert len({len(trace) for trace in traces}) > 3
    for trace in traces:
        *before, last = trace
        assert (last.smid < 0).any() or len(trace) == 100  # small ones, of Hypothesis
        assert all((placement.smid >= 0).all() for placement in before)
        assert trace.sequence.events == trace.sequence.launches
        assert {launch.carveout for launch in trace.sequence.launches} == {None}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_examples": 0}, "max_examples: 0"),
        ({"max_counterexamples": -1}, "max_counterexamples: -1"),
        ({"seed": -1}, "seed: -1"),
        ({"level": "roughly"}, "roughly"),
        ({"corpus": "corpus.jsonl.xz"}, "compressed"),
        (
            {"oracle": RecordedOracle([ONE]), "without": ["clusters"]},
            "without: clusters: does not go with recorded traces",
        ),
        ({"until_full": True, "options": SequenceOptions()}, "until_full: .* options"),
        ({"until_full": True, "past_refusal": True}, "until_full: .* past_refusal"),
        (
            {"oracle": RecordedOracle([ONE]), "until_full": True},
            "until_full: does not go with recorded traces",
        ),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        campaign(**arguments)


@pytest.mark.parametrize(
    "options",
    [
        {"max_launches": 0},
        {"min_launches": 11},
        {"carveouts": (101,)},
        {"clusters": (17,)},
        {"min_registers": 256},
        {"partitions": (Partition(()),)},
    ],
)
def test_options_out_of_range_are_named(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        SequenceOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"carveouts": ()},
        {"clusters": [1]},
        {"max_launches": 2.0},
        {"partitions": ((0, 1),)},
        {"cooperative": (None,)},
    ],
)
def test_options_of_another_type_are_named(options: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=next(iter(options))):
        SequenceOptions(**options)  # type: ignore[arg-type]


def test_devices_with_other_numbers_of_sms_are_not_compared() -> None:
    with pytest.raises(ValueError, match="sms"):
        campaign(RIGHT, "a100")


# -- oracles that fail ----------------------------------------------------------------------------


@pytest.mark.parametrize("error", [UnstableMeasurement("wavers"), DeadlineExceeded("slow")])
def test_an_unstable_measurement_is_counted_and_never_a_mismatch(error: Exception) -> None:
    report = campaign(Disturbed(10, error), RIGHT)
    assert len(report.unstable) == 20
    assert report.unstable[0].reason == str(error)
    assert not report.counterexamples
    assert "20 unstable" in str(report)


def test_a_disagreement_that_does_not_show_again_is_unstable() -> None:
    report = campaign(Disturbed(5), RIGHT)
    assert report.disagreements > 0
    assert len(report.unstable) == report.disagreements
    assert not report.counterexamples


def test_unstable_measurements_do_not_stop_shrinking() -> None:
    (found,) = campaign(Disturbed(7, UnstableMeasurement("wavers"))).counterexamples
    assert len(found.sequence.launches) <= 3


@pytest.mark.parametrize(
    "error", [NoGpuError("gone"), CudaError("cuLaunchKernel", "CUDA_ERROR"), ValueError("refused")]
)
def test_other_errors_end_the_campaign(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        campaign(Disturbed(10, error), RIGHT)
    assert caught.value is error
    (note,) = caught.value.__notes__
    assert "The campaign so far: rtx3090/ampere by occupancy: 10 sequences in" in note


def test_ctrl_c_ends_a_campaign_with_the_report_so_far() -> None:
    report = campaign(Disturbed(50, KeyboardInterrupt()), RIGHT)
    assert (report.ended, report.examples) == ("interrupted", 50)


def test_ctrl_c_while_shrinking_keeps_what_was_found(tmp_path: Path) -> None:
    before = campaign(draw="hypothesis").examples
    corpus = tmp_path / "c.jsonl"
    report = campaign(Disturbed(before + 3, KeyboardInterrupt()), corpus=corpus)
    assert report.ended == "interrupted"
    assert [found.shrunk for found in report.counterexamples] == [False]
    assert "not shrunk" in str(report)
    assert [trace.extra["shrunk"] for trace in load_traces(corpus)] == [False]


# -- the corpus -----------------------------------------------------------------------------------


def test_a_counterexample_is_kept_as_found_and_as_shrunk(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    report = campaign(corpus=corpus)
    found, shrunk = load_traces(corpus)
    assert (found.extra["shrunk"], shrunk.extra["shrunk"]) == (False, True)
    assert shrunk.extra["from"] == found.id
    assert shrunk.sequence == report.counterexamples[0].sequence
    assert shrunk.id == report.counterexamples[0].id
    assert {key: shrunk.extra[key] for key in ("predictor", "policy", "seed", "level")} == {
        "predictor": "rtx3090",
        "policy": "first_fit",
        "seed": 1,
        "level": "occupancy",
    }
    assert compare(shrunk, predict(shrunk.sequence, RIGHT)).exact


def test_a_campaign_begins_with_what_its_corpus_holds(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    first = campaign(corpus=corpus)
    size = corpus.stat().st_size
    again = campaign(corpus=corpus, seed=2)
    assert again.examples == 0
    assert again.replayed == 1
    assert [found.replayed for found in again.counterexamples] == [True]
    assert again.counterexamples[0].sequence == first.counterexamples[0].sequence
    assert corpus.stat().st_size == size
    repaired = campaign(RIGHT, RIGHT, corpus=corpus)
    assert (repaired.replayed, repaired.examples) == (1, 200)
    assert not repaired.counterexamples


def test_what_was_not_shrunk_when_a_campaign_ended_is_shrunk_by_the_next(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    before = campaign(draw="hypothesis").examples
    campaign(Disturbed(before + 3, KeyboardInterrupt()), corpus=corpus)
    report = campaign(corpus=corpus)
    assert report.examples == 0
    assert report.counterexamples[0].shrunk
    assert [trace.extra["shrunk"] for trace in load_traces(corpus)] == [False, True]


def test_a_corpus_of_another_device_is_passed_over(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    campaign("h200", "h200", "round_robin", corpus=corpus)
    report = campaign(RIGHT, RIGHT, corpus=corpus, max_examples=5)
    assert report.examples == 5
    assert not report.counterexamples


def test_a_corpus_whose_origin_is_no_text_is_refused(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    campaign(corpus=corpus)
    corpus.write_text(corpus.read_text().replace('"policy":"', '"policy":["x"],"other":"'))
    words = r"c\.jsonl, line 2: policy: text is needed, got \['x'\]"
    with pytest.raises(ValueError, match=words):
        campaign(corpus=corpus)


KILLED = """
import os, signal, sys
from tbsched.campaigns import fuzz
from tbsched.prediction.predict import predict, predict_as_recorded

class Killing:
    calls = 0
    def observe(self, seq):
        self.calls += 1
        if self.calls == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return predict(seq, "rtx3090")

fuzz(Killing(), "rtx3090", "first_fit", seed=1, corpus=sys.argv[1], record=sys.argv[1] + "-all",
     progress=False)
"""


def test_a_killed_campaign_loses_nothing(tmp_path: Path) -> None:
    corpus, everything = tmp_path / "c.jsonl", tmp_path / "c.jsonl-all"
    before = campaign(draw="hypothesis").examples
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(corpus), str(before + 5)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    assert [trace.extra["shrunk"] for trace in load_traces(corpus)] == [False]
    assert len(load_traces(everything)) == before
    resumed = campaign(corpus=corpus)
    assert (resumed.examples, len(resumed.counterexamples)) == (0, 1)


# -- recording ------------------------------------------------------------------------------------


def test_a_recording_holds_every_sequence_and_says_how_far_the_prediction_agrees(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.jsonl"
    report = record(RIGHT, path, 100, predictor=RIGHT, policy="round_robin", seed=3, progress=False)
    traces = load_traces(path)
    assert len(traces) == report.examples == 100
    assert 0 < report.occupancy < report.launches
    assert report.disagreements > 0
    assert not report.counterexamples
    assert len({trace.id for trace in traces}) == 100
    assert all(compare(trace, predict(trace.sequence, RIGHT)).exact for trace in traces)


def test_a_recording_appends(tmp_path: Path) -> None:
    for seed in (1, 2):
        record(RIGHT, tmp_path / "r.jsonl", 10, predictor=RIGHT, seed=seed, progress=False)
    assert len(load_traces(tmp_path / "r.jsonl")) == 20


def test_a_recording_marks_what_does_not_repeat(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    report = record(Disturbed(10), path, 50, predictor=RIGHT, repeats=2, seed=1, progress=False)
    marked = [trace for trace in load_traces(path) if trace.extra.get("unstable")]
    assert len(marked) == len(report.unstable) > 0
    assert report.disagreements == 0


def test_what_the_model_cannot_predict_is_recorded_all_the_same(tmp_path: Path) -> None:
    class Anywhere:
        def observe(self, seq: Sequence) -> Trace:
            single = Sequence([Launch(each.blocks, 32, 32) for each in seq.launches])
            placed = predict(single, "h200")
            return Trace(seq, placed.device, placed.placements)

    path = tmp_path / "r.jsonl"
    options = SequenceOptions(clusters=(2,), releases=False)
    report = record(Anywhere(), path, 20, options=options, policy="ampere", seed=1, progress=False)
    assert report.unpredicted == len(load_traces(path)) == 20
    assert "20 recorded only" in str(report)


def test_progress_is_shown_on_standard_error_only(capfd: pytest.CaptureFixture[str]) -> None:
    campaign(progress=True)
    out, err = capfd.readouterr()
    assert not out
    assert "seed 1" in err
    assert "def test_rtx3090_" in err


def test_without_hypothesis_the_words_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ImportError, match="need Hypothesis: pip install hypothesis"):
        campaign()


def test_importing_tbsched_imports_no_extra() -> None:
    code = (
        "import sys, tbsched, tbsched.pytest_plugin;"
        "print([m for m in ('hypothesis', 'rich', 'typer', 'matplotlib') if m in sys.modules])"
    )
    found = run_python(code)
    assert found.stdout.strip() == "[]"


def test_draws_with_fewer_launches_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They leave a local minimum of each disagreement, and are the same every time."""
    lengths: list[tuple[int, bool]] = []

    def noted(judge: Judge, draws: Draws, whole: bool, until: float) -> Iterator[Sequence]:
        lengths.append((draws.options.max_launches, whole))
        return narrower_suspects(judge, draws, whole, until)

    monkeypatch.setattr(shrinker, "narrower_suspects", noted)
    report = fuzz(
        "rtx3090", "rtx3090-no-local-memory", seed=1, max_examples=64, max_counterexamples=None,
        draw="native", shrink_seconds=300.0, progress=False,
    )  # fmt: skip
    assert report.disagreements > len(lengths) == len(set(lengths)) > 0
