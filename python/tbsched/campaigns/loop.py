"""A campaign from its options to its report: draw, compare, shrink, keep, and go on.

What needs Hypothesis is imported from here on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from tbsched.campaigns.drawing.by_hypothesis import ByHypothesis
from tbsched.campaigns.drawing.by_tables import ByTables
from tbsched.campaigns.drawing.drawer import Drawer, Ended
from tbsched.campaigns.drawing.one_by_one import OneByOne
from tbsched.campaigns.findings import Findings
from tbsched.campaigns.judge import Judge
from tbsched.campaigns.keeping import (
    CORPUS_SYNC,
    RECORDING_SYNC,
    Corpus,
    Growing,
    Recording,
)
from tbsched.campaigns.options import CampaignOptions, Path_
from tbsched.campaigns.oracles import (
    THREADS,
    Company,
    ManyOracle,
    ModelGpu,
    RecordedOracle,
    Repeated,
    open_oracle,
)
from tbsched.campaigns.results import SO_FAR, Report
from tbsched.campaigns.shrinking.minimise import Floors
from tbsched.campaigns.shrinking.shrinker import Shrinker
from tbsched.campaigns.space.coverage import Covering
from tbsched.campaigns.space.draws import AT_ONCE, Draws
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.campaigns.space.space import Space
from tbsched.campaigns.space.strategies import prefixes
from tbsched.campaigns.steer import Steered
from tbsched.campaigns.tally import Tally
from tbsched.campaigns.terminal.interrupts import Interrupts
from tbsched.campaigns.terminal.progress import Progress, shown
from tbsched.campaigns.trials import Trials
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.catalogue import unablated
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import is_predictable
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.annotations import Origin
from tbsched.traces.growing_file import TraceFile
from tbsched.traces.oracle import Oracle


def run(options: CampaignOptions) -> Report:
    """Runs a campaign to its end.

    Raises:
        whatever predictor and oracle raise, except for unstable measurements.
    """
    with contextlib.ExitStack() as opened:
        oracle = opened.enter_context(open_oracle(options.oracle))
        campaign = assembled(options, oracle, lambda: outputs(options, opened))
        try:
            ended = campaign.run()
        except Exception as error:
            error.add_note(f"{SO_FAR}{campaign.report('error')}")
            raise
        return campaign.report(ended)


@dataclass(frozen=True, slots=True)
class Outputs:
    """Corpus, recording and progress bar to which a campaign writes."""

    corpus: Corpus
    recording: Growing | None
    progress: Progress


def outputs(options: CampaignOptions, opened: contextlib.ExitStack) -> Outputs:
    """Opens the files and the progress bar that a user asked for."""

    def file(path: Path_ | None, sync_every: int) -> TraceFile | None:
        if path is None:
            return None
        return opened.enter_context(TraceFile(path, sync_every=sync_every))

    corpus, recording = file(options.corpus, CORPUS_SYNC), file(options.record, RECORDING_SYNC)
    progress = opened.enter_context(shown(options.progress, options.max_examples))
    progress.say(f"fuzz: seed {options.seed}")
    return Outputs(Corpus.of(corpus), recording, progress)


@dataclass(frozen=True, slots=True)
class Campaign:
    """All parts of one, put together."""

    trials: Trials
    shrinker: Shrinker
    drawer: Drawer

    def run(self) -> Ended:
        """Runs the campaign until it ends, and returns why it ended. What earlier campaigns have
        found comes first."""
        try:
            with self.trials.interrupts.watched():
                return self._replayed() or self._drawn()
        except KeyboardInterrupt:
            self.shrinker.give_up()
            return "interrupted"
        except Exception:
            self.shrinker.give_up()
            raise

    def report(self, ended: Ended) -> Report:
        """Returns the numbers so far."""
        return self.trials.tally.report(self.shrinker.origin, self.trials.coverage.found, ended)

    def _replayed(self) -> Ended | None:
        """Replays counterexamples that are not resolved. Returns why the campaign ends; None: it
        goes on."""
        for entry in self.shrinker.corpus.unresolved:
            try:
                comparison = self.shrinker.again(entry.sequence)
            except ValueError:
                continue  # recorded on another device, or unknown to this oracle
            self.trials.tally.replayed += 1
            if comparison is None or comparison.agrees:
                continue
            if entry.shrunk:
                self.trials.findings.add(comparison, shrunk=True, replayed=True)
            else:
                self.shrinker.resume(comparison)
                self.shrinker.finish()
            if self.trials.findings.enough:
                return "counterexamples"
        return None

    def _drawn(self) -> Ended:
        """Draws until the campaign ends; returns why it ends."""
        while (ended := self.drawer.until_found()) is None:
            self.shrinker.finish()
            if self.trials.findings.enough:
                return "counterexamples"
        return ended


def assembled(asked: CampaignOptions, oracle: Oracle, opening: Callable[[], Outputs]) -> Campaign:
    """Returns a campaign, made of its options.

    Args:
        asked: options of the campaign.
        oracle: the opened oracle.
        opening: opens the outputs; called once the options are known to be valid.
    """
    spec = find_device(asked.predictor)
    native = _is_native(asked, oracle)
    options, space = _space(asked, oracle, spec)
    initial_state = asked.initial_state
    company = Company(oracle)
    if asked.steer:
        oracle = Steered(oracle, spec, initial_state)
        initial_state = oracle.initial_state
    if asked.repeats != 1:
        oracle = Repeated(oracle, asked.repeats)
    out = opening()
    progress = out.progress
    # Recorded observations always have the full settling time.
    judge = Judge(
        oracle, spec, asked.policy, initial_state, asked.level,
        False if asked.until_full else asked.past_refusal,
        hasty=out.recording is None, company=company,
    )  # fmt: skip
    tally = Tally()
    findings = Findings(
        judge, tally, progress, asked.predictor, asked.oracle, asked.max_counterexamples
    )
    trials = Trials(
        judge, tally, findings, Recording(out.recording, asked.seed), progress, Interrupts(),
        Covering(spec, judge.policy_name, judge.states[0], THREADS, asked.begin // AT_ONCE),
        asked.begin, asked.max_examples, asked.max_seconds,
    )  # fmt: skip
    origin = Origin(spec.name, judge.policy_name, judge.level, asked.seed, shrunk=False)
    shrinker = Shrinker(
        judge, tally, findings, out.corpus, progress, space,
        Floors.of(options), origin, asked.shrink_seconds,
    )  # fmt: skip
    if native:
        return Campaign(trials, shrinker, _native_drawer(trials, shrinker))
    return Campaign(trials, shrinker, ByHypothesis(trials, shrinker, asked.target_fullness))


def _space(
    asked: CampaignOptions, oracle: Oracle, predictor: DeviceSpec
) -> tuple[SequenceOptions, Space]:
    """Returns the options, whose first values numbers shrink to, and the space of draws."""
    options = SequenceOptions() if asked.options is None else asked.options
    if asked.strategy is not None:
        return options, Space(asked.strategy)
    if isinstance(oracle, RecordedOracle):
        if asked.until_full:
            raise ValueError("until_full: does not go with recorded traces, replayed as they are")
        if asked.without:
            raise ValueError(
                f"without: {', '.join(asked.without)}: does not go with recorded traces, which are "
                "replayed as they are"
            )
        return options, Space(prefixes(oracle.predictable(predictor)))
    # What an ablation would let pass, a GPU may refuse.
    spec = unablated(predictor)
    models = [_with_policy(predictor, asked.policy)]
    if isinstance(oracle, ModelGpu):
        models.append(_with_policy(oracle.spec, oracle.policy))
        spec = unablated(oracle.spec)
    if asked.limits is not None:
        spec = find_device(asked.limits)
    if asked.options is None:
        options = (
            SequenceOptions.until_full() if asked.until_full else SequenceOptions.everything(spec)
        ).without(asked.without)
        pair = Sequence([Launch(2, 32, 32, cluster=2)])
        if not all(is_predictable(pair, spec) for spec in models):
            options = replace(options, clusters=(1,))
    return options, Space.of(Draws(spec, options, asked.seed, tuple(models), asked.begin))


def _with_policy(spec: DeviceSpec, policy: str | None) -> DeviceSpec:
    return spec if policy is None else replace(spec, policy=policy)


def _is_native(options: CampaignOptions, oracle: Oracle) -> bool:
    """Returns whether sequences are drawn by tables, not by Hypothesis."""
    own_sources = {
        "a strategy": options.strategy is not None,
        "recorded traces": isinstance(oracle, RecordedOracle),
        "target_fullness": options.target_fullness,
    }
    for source, is_given in own_sources.items():
        if options.draw == "native" and is_given:
            raise ValueError(f"draw: 'native' does not go with {source}; take 'hypothesis'")
    if options.draw == "auto":
        return isinstance(oracle, ManyOracle | ModelGpu) and not any(own_sources.values())
    return options.draw == "native"


def _native_drawer(trials: Trials, shrinker: Shrinker) -> Drawer:
    """Returns the drawer that draws with NumPy, without Hypothesis."""
    judge, draws = trials.judge, shrinker.space.draws
    assert draws is not None  # neither a strategy nor recorded traces
    # Traces are kept, or go on past a refusal, one by one.
    if judge.tables is not None and not trials.recording and not judge.past_refusal:
        return ByTables(trials, shrinker, draws)
    return OneByOne(trials, shrinker, draws)
