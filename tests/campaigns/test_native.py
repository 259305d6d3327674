"""Campaigns whose sequences NumPy draws: what is drawn, how they overlap, who shrinks."""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from helpers import Fake
from helpers import gpu as few_sms
from tbsched.campaigns import RecordedOracle, Report, SequenceOptions, fuzz, record
from tbsched.campaigns.judge import Judge
from tbsched.campaigns.space.draws import Draws
from tbsched.campaigns.space.search import search
from tbsched.campaigns.terminal.interrupts import Interrupts
from tbsched.comparison.compare import compare
from tbsched.errors import UnstableMeasurement
from tbsched.hardware.catalogue import device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.partitions import split_sms
from tbsched.launcher.observe import SETTLE, Gpu, Outcome, Smids
from tbsched.prediction.predict import predict
from tbsched.prediction.tables import predict_until_refused
from tbsched.program.event_table import EventTable
from tbsched.program.sequence import Launch, Sequence
from tbsched.strategies import sequences
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace

RIGHT = "rtx3090"
WRONG = ("rtx3090", "first_fit")
RICH = SequenceOptions(
    min_launches=2, max_launches=5, carveouts=(100, None, 0), clusters=(1, 2), priorities=(0, -1)
)


def campaign(oracle: object = RIGHT, *predictor: str, **arguments: object) -> Report:
    settings: dict[str, object] = {
        "seed": 1,
        "max_examples": 200,
        "progress": False,
        "draw": "native",
    }
    return fuzz(oracle, *(predictor or WRONG), **{**settings, **arguments})  # type: ignore[arg-type]


class Busy:
    """A model behind the surface of a GPU. ``hasty`` is what it predicts in a short look."""

    def __init__(self, hasty: tuple[str, str | None] = (RIGHT, None), right: str = RIGHT) -> None:
        self.hasty = hasty
        self.right = right
        self.patient = 0
        self.looks = 0
        self.raises: dict[int, BaseException] = {}

    def observe(self, seq: Sequence, /, *, settle: float = SETTLE) -> Trace:
        self.looks += 1
        if self.looks in self.raises:
            raise self.raises[self.looks]
        if settle < SETTLE:
            return predict(seq, *self.hasty)
        self.patient += 1
        return predict(seq, self.right)

    def observe_many(
        self, sequences: Iterable[Sequence], /, *, settle: float = SETTLE
    ) -> Generator[Outcome, None, None]:
        ahead: list[Sequence] = []
        for seq in itertools.chain(sequences, [None] * 5):
            if seq is not None:
                ahead.append(seq)
            if ahead and (len(ahead) > 4 or seq is None):
                try:
                    yield self.observe(ahead.pop(0), settle=settle)
                except UnstableMeasurement as error:
                    yield error


class Table(Busy):
    """The same, taking tables. Numbers in ``raises`` count their sequences, from 1 on."""

    def __init__(
        self,
        hasty: tuple[str, str | None] = (RIGHT, None),
        right: str = RIGHT,
        start: InitialState | None = None,
    ) -> None:
        super().__init__(hasty, right)
        self.start = start
        self.in_tables = 0

    def observe_tables(
        self, tables: Iterable[EventTable], /, *, settle: float = SETTLE, any_state: bool = False
    ) -> Generator[list[Smids], None, None]:
        assert settle < SETTLE
        spec, policy = device(self.hasty[0]), self.hasty[1] or device(self.hasty[0]).policy
        state = self.start or spec.initial_states(policy)[0]
        for table in tables:
            _, smids, _ = predict_until_refused(table, spec, policy, state, 1)
            # As a GPU goes on behind a launch that the model thinks does not fit, so does this.
            seen: list[Smids] = []
            for number, smid in enumerate(smids):
                self.in_tables += 1
                error = self.raises.get(self.in_tables)
                if error is not None and not isinstance(error, UnstableMeasurement):
                    raise error
                sizes = table.chosen(np.arange(len(table)) == number).launch_blocks
                seen.append(
                    error or np.append(smid, np.full(sizes.sum() - len(smid), -1, np.int32))
                )
            yield seen


# -- draws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        SequenceOptions(),
        RICH,
        SequenceOptions(min_launches=3, max_launches=3),
        SequenceOptions.everything(device("h200")),
    ],
)
def test_hypothesis_draws_the_same_from_the_choices(options: SequenceOptions) -> None:
    spec = device("h200")
    for draw in itertools.islice(Draws(spec, options, seed=3), 3):
        seen: list[Sequence] = []

        def look(sequence: Sequence, seen: list[Sequence] = seen) -> bool:
            seen.append(sequence)
            return True

        search(
            sequences(spec, options),
            look,
            examples=1,
            seed="0",
            shrink_seconds=0.0,
            start=draw.choices,
        )
        assert seen[0] == draw.sequence


def test_nothing_is_drawn_any_more_once_the_time_to_shrink_is_over() -> None:
    spec = device("h200")
    draw = next(iter(Draws(spec, RICH, seed=3)))
    drawn: list[Sequence] = []

    def noted(sequence: Sequence) -> Sequence:
        drawn.append(sequence)
        return sequence

    found = search(
        sequences(spec, RICH).map(noted),
        lambda _: True,
        examples=1,
        seed="0",
        shrink_seconds=0.0,
        start=draw.choices,
    )
    assert found == draw.sequence
    assert len(set(drawn)) == 2


def test_hypothesis_shrinks_from_there() -> None:
    draw = next(d for d in Draws(device("h200"), RICH, seed=1) if len(d.sequence.launches) == 5)
    smallest = search(
        sequences("h200", RICH),
        lambda sequence: sum(launch.blocks for launch in sequence.launches) >= 2,
        examples=1,
        seed="0",
        shrink_seconds=10.0,
        start=draw.choices,
    )
    assert smallest is not None
    assert [launch.blocks for launch in smallest.launches] == [1, 1]


def test_draws_repeat_differ_and_fit_the_device() -> None:
    spec = device("h200")
    first, again, other = (
        [draw.sequence for draw in itertools.islice(Draws(spec, RICH, seed), 300)]
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(set(first)) > 290
    for sequence in first:
        spec.check(sequence)
        assert 2 <= len(sequence.launches) <= 5
    flat = [launch for sequence in first for launch in sequence.launches]
    assert {launch.carveout for launch in flat} == {100, None, 0}
    assert {launch.cluster for launch in flat} == {1, 2}


# -- campaigns ------------------------------------------------------------------------------------


def test_a_model_agrees_with_itself() -> None:
    report = campaign(RIGHT, RIGHT)
    assert (report.examples, report.disagreements, report.ended) == (200, 0, "examples")
    assert report.launches == report.occupancy == report.exact > 400


@pytest.mark.parametrize("oracle", [RIGHT, Busy(), Table()])
def test_a_wrong_predictor_is_caught_and_its_counterexample_shrunk(oracle: object) -> None:
    report = campaign(oracle)
    (found,) = report.counterexamples
    assert report.ended == "counterexamples"
    assert found.shrunk
    assert len(found.sequence.launches) <= 2
    assert compare(found.prediction, predict(found.sequence, *WRONG)).exact


@pytest.mark.parametrize("oracle", [Busy(), Table()])
@pytest.mark.parametrize("level", ["occupancy", "exact"])
def test_what_agrees_is_counted_alike_by_any_oracle(oracle: Busy, level: str) -> None:
    model = campaign(RIGHT, RIGHT, level=level, past_refusal=False)
    report = campaign(oracle, RIGHT, level=level, past_refusal=False)
    assert (report.examples, report.launches, report.blocks) == (200, model.launches, model.blocks)
    assert report.launches == report.occupancy == report.exact
    assert oracle.patient == 0


def test_a_latent_state_is_found_for_tables_too() -> None:
    spec = device("h200")
    start = spec.initial_states()[5]

    oracle = Table(("h200", None), "h200", start)
    report = campaign(oracle, spec, level="exact")
    assert report.launches == report.exact > 400
    assert report.disagreements == 0
    report = campaign(oracle, spec, level="occupancy")
    assert report.launches == report.occupancy > report.exact


@pytest.mark.parametrize("oracle", ["h200", Table(("h200", None), "h200")])
def test_it_goes_on_where_it_was_behind_a_counterexample(oracle: object) -> None:
    spec = device("h200-no-warp-skip")
    drawn = [d.sequence for d in itertools.islice(Draws(spec, SequenceOptions(), 5), 150)]
    judge = Judge(Busy(), spec, None, None, "occupancy", False, False)
    differ = [
        not compare(p, predict(p.sequence, "h200")).occupancy for p in map(judge.predict, drawn)
    ]
    report = campaign(
        oracle, spec, max_counterexamples=None, max_examples=150, seed=5, shrink_seconds=0.2,
        options=SequenceOptions(), past_refusal=False,
    )  # fmt: skip
    assert report.examples == 150
    assert report.disagreements == sum(differ) > 1


def test_cooperative_launches_and_clusters_fit_predictor_and_oracle() -> None:
    # The ablation takes no cluster in a partition of TPCs of no GPC: there both get none.
    rest = split_sms("h200", 64)[1]
    options = SequenceOptions(clusters=(2,), partitions=(rest, None), cooperative=(True,))
    pair = ("h200", "h200-clusters-in-gpcs")
    for oracle, predictor in (pair, pair[::-1]):
        report = campaign(
            oracle, predictor, options=options, max_examples=20, max_counterexamples=0
        )
        assert report.examples == 20
        ways = report.coverage.ways
        assert ways["partition"] > ways["cluster"] > 0 < ways["cooperative"]
        assert report.disagreements > 0


def test_an_ablation_in_the_place_of_the_gpu_is_asked_nothing_that_the_device_refuses() -> None:
    report = campaign("h200-no-processing-blocks", "h200", max_counterexamples=0)
    assert report.disagreements > 0


def test_the_same_seed_draws_the_same() -> None:
    first, again = campaign(), campaign()
    assert first.counterexamples[0].sequence == again.counterexamples[0].sequence
    assert first.examples == again.examples


@pytest.mark.parametrize("kind", [Busy, Table])
def test_a_hasty_look_counts_only_where_it_agrees(kind: type[Busy]) -> None:
    oracle = kind(hasty=WRONG)
    report = campaign(oracle, RIGHT, max_examples=50)
    assert (report.disagreements, report.counterexamples, report.unstable) == (0, (), ())
    assert report.launches == report.occupancy
    assert 0 < oracle.patient < 50


def test_what_is_recorded_was_looked_at_with_patience(tmp_path: Path) -> None:
    oracle = Table(hasty=WRONG)
    report = record(oracle, tmp_path / "r.jsonl", 50, predictor=RIGHT, progress=False, seed=1)
    assert oracle.patient == 50
    assert report.examples == len(load_traces(tmp_path / "r.jsonl")) == 50


@pytest.mark.parametrize("oracle", [Busy(), Table()])
def test_an_unstable_sequence_is_counted_and_the_others_go_on(oracle: Busy) -> None:
    oracle.raises = {3: UnstableMeasurement("shaky"), 9: UnstableMeasurement("shaky")}
    report = campaign(oracle, RIGHT, max_examples=30)
    assert report.examples == 30
    assert [unstable.reason for unstable in report.unstable] == ["shaky", "shaky"]


@pytest.mark.parametrize("oracle", [Busy(), Table()])
def test_errors_of_the_oracle_come_through(oracle: Busy) -> None:
    oracle.raises = {7: OSError("gone")}
    with pytest.raises(OSError, match="gone"):
        campaign(oracle, RIGHT)


def test_interrupt_gives_the_report_so_far() -> None:
    oracle = Busy()
    oracle.raises = {20: KeyboardInterrupt()}
    report = campaign(oracle, RIGHT)
    assert report.ended == "interrupted"
    assert report.examples == 19


def test_it_ends_in_time() -> None:
    report = campaign(RIGHT, RIGHT, max_seconds=0.2, max_examples=10**6)
    assert report.ended == "seconds"
    assert 0 < report.examples < 10**6


def test_a_slow_oracle_is_asked_for_few_at_once_and_draws_do_not_depend_on_it() -> None:
    sizes: list[int] = []

    class Slow(Table):
        def observe_tables(
            self,
            tables: Iterable[EventTable],
            /,
            *,
            settle: float = SETTLE,
            any_state: bool = False,
        ) -> Generator[list[Smids], None, None]:
            def slow() -> Iterator[EventTable]:
                for table in tables:
                    sizes.append(len(table))
                    time.sleep(0.01 * len(table))
                    yield table

            yield from super().observe_tables(slow(), settle=settle, any_state=any_state)

    report = campaign(Slow(), RIGHT, max_examples=70)
    assert sizes == [16, 16, 16, 16, 6]
    assert report.launches == campaign(Table(), RIGHT, max_examples=70).launches


class Own:
    """An oracle of a user's, which may be anything."""

    def observe(self, seq: Sequence) -> Trace:
        return predict(seq, RIGHT)


def test_a_gpu_and_a_model_are_drawn_for_natively_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    native: list[int] = []

    def none(*_: object) -> Iterator[object]:
        native.append(1)
        return iter(())

    # By this path: the name tbsched.fuzz is a function, too.
    draws = importlib.import_module("tbsched.campaigns.space.draws").Draws
    monkeypatch.setattr(draws, "__iter__", none)
    monkeypatch.setattr(draws, "tables", none)
    for oracle in (Busy(), Table(), RIGHT):
        campaign(oracle, RIGHT, draw="auto")
    assert native == [1, 1, 1]
    campaign(Busy(), RIGHT, draw="hypothesis", max_examples=5)
    campaign(Own(), RIGHT, draw="auto", max_examples=5)
    campaign(Busy(), RIGHT, draw="auto", max_examples=5, target_fullness=True)
    assert native == [1, 1, 1]


def test_what_native_cannot_do_is_said() -> None:
    trace = predict(Sequence([Launch(1, 32, 32)]), RIGHT)
    with pytest.raises(ValueError, match="draw: 'native' does not go with a strategy"):
        campaign(strategy=st.just(trace.sequence))
    with pytest.raises(ValueError, match="draw: 'native' does not go with recorded traces"):
        campaign(RecordedOracle([trace]))
    with pytest.raises(ValueError, match="draw: 'native' does not go with target_fullness"):
        campaign(target_fullness=True)
    with pytest.raises(ValueError, match="draw: 'fast' is not one of auto, native, hypothesis"):
        campaign(draw="fast")


# -- on the fake driver ---------------------------------------------------------------------------


def test_on_a_gpu_from_end_to_end(fake_gpu: tuple[Gpu, Fake]) -> None:
    spec = few_sms(4, "h200")
    report = fuzz(
        fake_gpu[0], spec, "first_fit", seed=1, max_examples=100, progress=False, shrink_seconds=5
    )
    (found,) = report.counterexamples
    assert found.shrunk
    assert len(found.sequence.launches) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupt_on_a_gpu(fake_gpu: tuple[Gpu, Fake]) -> None:
    gpu, driver = fake_gpu
    enough = driver["launches"] + 200

    def interrupt() -> None:
        while driver["launches"] < enough:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    report = fuzz(
        gpu, few_sms(4, "h200"), "round_robin", seed=1, max_examples=10**6,
        max_counterexamples=0, progress=False,
    )  # fmt: skip
    assert report.ended == "interrupted"
    assert report.examples > 0
    assert gpu.observe(Sequence([Launch(8, 1024, 32)]))[0].placed == 8


class Finalised:
    """A Ctrl-C comes while it is."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)


def test_interrupt_that_python_drops_is_raised_at_the_next_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    interrupts = Interrupts()
    with interrupts.watched():
        Finalised()
        assert not dropped  # as a traceback on the terminal
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
    interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
