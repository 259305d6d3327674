"""The loop of a campaign: draw, compare, shrink, keep, and go on."""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tbsched.campaigns.interrupts import Interrupts
from tbsched.campaigns.judge import Case, Judge
from tbsched.campaigns.progress import Progress
from tbsched.campaigns.results import Counterexample, Report, Unstable, case_id, code_of
from tbsched.campaigns.shrink import Floors, minimise, size
from tbsched.errors import DeadlineExceeded, UnstableMeasurement
from tbsched.program.sequence import Sequence
from tbsched.traces.growing_file import TraceFile
from tbsched.traces.trace import Trace

if TYPE_CHECKING:
    from hypothesis import strategies as st

    from tbsched.campaigns.bulk import Pipeline
    from tbsched.campaigns.draws import Draw, DrawnTable, Draws
    from tbsched.campaigns.tables import Tables


# Draws with fewer launches, to leave a local minimum when shrinking.
NARROWER_EXAMPLES = 2000
# Attempts at seeing a shrunk disagreement twice in a row: one disturbed run must not discard it.
CONFIRMATIONS = 3


# Sequences that are observed together: so many that Python has little to do, and so few that a
# campaign ends in time.
SMALLEST_TABLE = 16
TABLE_SECONDS = 0.05


class _End(BaseException):
    """Passes through Hypothesis, which would take an ``Exception`` for a failing test."""


class _Aborted(BaseException):
    """Carries an error of predictor or oracle through Hypothesis."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@dataclass(slots=True)
class Campaign:
    """A campaign and its numbers so far; see :func:`tbsched.fuzz` for the arguments."""

    judge: Judge
    strategy: st.SearchStrategy[Sequence]
    strategy_of: Callable[[int], st.SearchStrategy[Sequence]] | None  # so many launches
    draws: Draws | None  # of the strategy's sequences; None: Hypothesis draws
    seed: int
    corpus: TraceFile | None
    recording: TraceFile | None
    floors: Floors
    observed: str | None
    max_examples: int
    max_seconds: float | None
    max_counterexamples: int | None  # 0: nothing is shrunk
    shrink_seconds: float
    target_fullness: bool
    progress: Progress

    examples: int = 0
    disagreements: int = 0
    launches: int = 0
    blocks: int = 0
    occupancy: int = 0
    exact: int = 0
    replayed: int = 0
    unpredicted: int = 0
    shrinking: int = 0
    fullness: float = 0.0
    counterexamples: dict[Sequence, Counterexample] = field(default_factory=dict)
    unstable: list[Unstable] = field(default_factory=list)
    # What is being shrunk: as it was found and confirmed, and the smallest that failed since.
    found: Case | None = None
    best: Case | None = None
    shrink_until: float = 0.0
    started: float = field(default_factory=time.monotonic)
    interrupts: Interrupts = field(default_factory=Interrupts)

    def run(self) -> Report:
        """Runs to its end.

        Raises:
            whatever predictor and oracle raise, except for unstable measurements.
        """
        self.progress.say(f"fuzz: seed {self.seed}")
        try:
            with self.interrupts.watched():
                ended = self._replay() or self._search()
        except _End:
            ended = "seconds"
        except _Aborted as aborted:
            raise aborted.error from aborted.error.__cause__
        except KeyboardInterrupt:
            ended = "interrupted"
            if self.best is not None:
                self._add(self.best, shrunk=False, replayed=False)
        return self._report(ended)

    # -- the corpus comes first --------------------------------------------------------------------

    def _replay(self) -> str | None:
        for trace in _unresolved(self.corpus.traces if self.corpus else ()):
            try:
                case = self._again(trace.sequence)
            except ValueError:
                continue  # of another device, or nothing that this oracle knows
            self.replayed += 1
            if case is None or case.agrees:
                continue
            if trace.extra["shrunk"]:
                self._add(case, shrunk=True, replayed=True)
            else:
                self.found = self.best = case
                self.shrink_until = time.monotonic() + self.shrink_seconds
                self._finish()
            if self._enough():
                return "counterexamples"
        return None

    def _again(self, sequence: Sequence) -> Case | None:
        prediction = self.judge.predict(sequence)
        with self._counting_unstable(prediction.sequence):
            case = self.judge.judge(prediction)
            return case if case.agrees else self._confirmed(case)
        return None

    # -- drawing -----------------------------------------------------------------------------------

    def _search(self) -> str:
        # Here, not above: without it a campaign cannot begin, but `import tbsched` must work.
        from tbsched.campaigns.search import EXAMPLES_PER_SEARCH, search

        if self.draws is not None:
            return self._search_natively()
        searches = 0
        while self.examples < self.max_examples:
            before = self.examples
            wanted = min(EXAMPLES_PER_SEARCH, self.max_examples - before)
            failing = search(
                self.strategy,
                self._fails,
                examples=wanted,
                seed=f"{self.seed}:{searches}",
                # The other half is for what Hypothesis cannot do.
                shrink_seconds=self.shrink_seconds / 2,
                score=(lambda: self.fullness) if self.target_fullness else None,
            )
            searches += 1
            if failing is not None:
                self._finish()
                if self._enough():
                    return "counterexamples"
            elif self.examples - before < wanted:
                return "exhausted"
        return "examples"

    def _fails(self, drawn: Sequence) -> bool:
        try:
            return self._draw(drawn) if self.best is None else self._smaller(drawn)
        except Exception as error:
            raise _Aborted(error) from None

    def _draw(self, drawn: Sequence) -> bool:
        if self._over():
            raise _End
        self._count_examples(1)
        prediction = self._predict(drawn)
        if prediction is None:
            return False
        case: Case | None = None
        with self._counting_unstable(prediction.sequence):
            case = self.judge.look(prediction)
        return case is not None and self._is_news(case) and self._begin_shrinking(case)

    def _search_natively(self) -> str:
        from tbsched.campaigns.search import search

        for draw, case in self._news():
            if not self._begin_shrinking(case):
                continue
            search(
                self.strategy,
                self._fails,
                examples=1,
                seed=f"{self.seed}:native",
                shrink_seconds=self.shrink_seconds / 2,
                start=draw.choices,
            )
            self._finish()
            if self._enough():
                return "counterexamples"
        return "examples" if self.examples >= self.max_examples else "seconds"

    def _news(self) -> Iterator[tuple[Draw, Case]]:
        """Disagreements to be shrunk, with the draws that they come of."""
        from tbsched.campaigns.bulk import Pipeline
        from tbsched.campaigns.tables import Tables

        assert self.draws is not None
        next_news: Callable[[], tuple[Draw, Case] | None]
        # Traces are kept, or go on past a refusal, one by one.
        if self.judge.tables is not None and self.recording is None and not self.judge.past_refusal:
            tables = Tables(self.judge, self._drawn(self.draws))
            next_news = functools.partial(self._next_of_tables, tables)
        else:
            pipeline = Pipeline(self.judge, self._predicted(self.draws))
            next_news = functools.partial(self._next_of_pipeline, pipeline)
        while (found := next_news()) is not None:
            yield found

    def _drawn(self, draws: Draws) -> Iterator[DrawnTable]:
        left = self.max_examples
        for table in draws.tables():
            begin = 0
            while begin < len(table):
                if left == 0 or self._over():
                    return
                rate = self.examples / max(self._seconds(), 1e-3)
                size = max(SMALLEST_TABLE, round(rate * TABLE_SECONDS))
                part = table.part(begin, min(begin + size, begin + left))
                yield part
                begin += len(part)
                left -= len(part)

    def _next_of_tables(self, tables: Tables) -> tuple[Draw, Case] | None:
        from tbsched.campaigns.tables import Agreed

        with contextlib.closing(tables.outcomes()) as outcomes:
            for found in outcomes:
                if isinstance(found, Agreed):
                    self._count_examples(found.examples)
                    self.launches += found.launches
                    self.blocks += found.blocks
                    self.occupancy += found.occupancy
                    self.exact += found.exact
                    if self._over():
                        return None
                    continue
                self._count_examples(1)
                sequence = found.draw.sequence
                with self._counting_unstable(sequence):
                    if found.error is not None:
                        raise found.error
                    case = self.judge.judge(self.judge.predict(sequence))
                    if self._is_news(case):
                        return found.draw, case
        return None

    def _predicted(self, draws: Iterable[Draw]) -> Iterator[tuple[Draw, Trace]]:
        for draw in itertools.islice(draws, self.max_examples):
            if self._over():
                return
            prediction = self._predict(draw.sequence)
            if prediction is None:
                self._count_examples(1)
            else:
                yield draw, prediction

    def _next_of_pipeline(self, pipeline: Pipeline) -> tuple[Draw, Case] | None:
        with contextlib.closing(pipeline.outcomes()) as outcomes:
            for draw, prediction, outcome in outcomes:
                self._count_examples(1)
                with self._counting_unstable(prediction.sequence):
                    if not isinstance(outcome, Trace):
                        raise outcome
                    case = self.judge.after_first_look(prediction, outcome)
                    if self._is_news(case):
                        return draw, case
        return None

    def _over(self) -> bool:
        return self.max_seconds is not None and self._seconds() > self.max_seconds

    def _count_examples(self, count: int) -> None:
        self.interrupts.check()
        self.examples += count
        self.progress.update(self.examples, self.launches, self.disagreements, "fuzz")

    def _is_news(self, case: Case) -> bool:
        """Adds to the numbers; True for a disagreement that is to be shrunk."""
        if not self._counted(case) or case.agrees:
            return False
        self.disagreements += 1
        return self.max_counterexamples != 0 and case.sequence not in self.counterexamples

    def _begin_shrinking(self, case: Case) -> bool:
        """Whether it shows again."""
        with self._counting_unstable(case.sequence):
            self.found = self.best = self._confirmed(case)
        if self.found is None:
            return False
        self.shrink_until = time.monotonic() + self.shrink_seconds
        # Written down before anything else can go wrong.
        self._write(self.found, shrunk=False)
        return True

    def _predict(self, drawn: Sequence) -> Trace | None:
        try:
            return self.judge.predict(drawn)
        except ValueError:
            if self.recording is None or self.max_counterexamples != 0:
                raise
        with self._counting_unstable(drawn):
            self.recording.append(self._named(self.judge.oracle.observe(drawn)))
            self.unpredicted += 1
        return None

    def _counted(self, case: Case) -> bool:
        """Adds to the numbers; False for an observation that is marked unstable."""
        if self.recording is not None:
            self.recording.append(self._named(case.observation))
        reason = case.observation.extra.get("unstable")
        if reason:
            self.unstable.append(Unstable(case.sequence, str(reason)))
            return False
        for launch, placement in zip(case.diff.launches, case.observation, strict=True):
            self.launches += 1
            self.blocks += len(placement.smid)
            self.occupancy += launch.occupancy
            self.exact += launch.exact
        if self.target_fullness:
            placed = zip(case.sequence.launches, case.prediction, strict=True)
            self.fullness = float(sum(-(-a.threads // 32) * b.placed for a, b in placed))
        return True

    # -- shrinking ---------------------------------------------------------------------------------

    def _smaller(self, candidate: Sequence) -> bool:
        """Whether a candidate for shrinking still fails; the smallest that does is kept."""
        if time.monotonic() > self.shrink_until:
            return False
        self.shrinking += 1
        self.progress.update(self.examples, self.launches, self.disagreements, "shrink")
        prediction = self.judge.predict(candidate)
        with self._counting_unstable(prediction.sequence):
            case = self.judge.look(prediction)
            if not case.agrees and self.best and size(case.sequence) < size(self.best.sequence):
                self.best = case
            return not case.agrees
        return False

    def _finish(self) -> None:
        """Shrinks what Hypothesis has left, confirms it and writes it down."""
        assert self.found is not None
        smallest = self._minimal()
        while smallest is not None and len(smallest.sequence.launches) > 1:
            # A local minimum; are there disagreements with fewer launches?
            fewer = self._narrower(len(smallest.sequence.launches) - 1)
            if fewer is None or fewer.sequence in self.counterexamples:
                break
            smallest = fewer
        if smallest is None:
            self._add(self.found, shrunk=False, replayed=False)
        else:
            self._add(smallest, shrunk=True, replayed=False)
            self._write(smallest, shrunk=True, source=self.found)
        self.found = self.best = None

    def _minimal(self) -> Case | None:
        """The best so far, minimised; None if it does not show again."""
        assert self.best is not None
        verdicts: dict[Sequence, bool] = {}

        def still_fails(candidate: Sequence) -> bool:
            if candidate not in verdicts:
                verdicts[candidate] = False
                # What the oracle refuses, or never recorded, is no smaller counterexample.
                with contextlib.suppress(ValueError):
                    verdicts[candidate] = self._smaller(candidate)
            return verdicts[candidate]

        smallest = minimise(self.best.sequence, still_fails, self.floors)
        for _ in range(CONFIRMATIONS):
            case = self._again(smallest)
            if case is not None and not case.agrees:
                return case
        return None

    def _narrower(self, launches: int) -> Case | None:
        if self.strategy_of is None or time.monotonic() > self.shrink_until:
            return None
        from tbsched.campaigns.search import search

        found = search(
            self.strategy_of(launches),
            self._fails,
            examples=NARROWER_EXAMPLES,
            seed=f"{self.seed}:narrower",
            shrink_seconds=self.shrink_seconds,
        )
        return None if found is None else self._minimal()

    def _confirmed(self, case: Case) -> Case | None:
        again = self.judge.confirm(case)
        if again is None:
            raise UnstableMeasurement("a disagreement did not show again")
        return again

    @contextlib.contextmanager
    def _counting_unstable(self, sequence: Sequence) -> Iterator[None]:
        try:
            yield
        except (UnstableMeasurement, DeadlineExceeded) as error:
            self.unstable.append(Unstable(sequence, str(error)))

    # -- keeping -----------------------------------------------------------------------------------

    def _add(self, case: Case, *, shrunk: bool, replayed: bool) -> None:
        spec, policy = self.judge.spec, self.judge.policy
        known = len(self.counterexamples)
        self.counterexamples.setdefault(
            case.sequence,
            Counterexample(
                sequence=case.sequence,
                prediction=case.prediction,
                observation=case.observation,
                diff=case.diff,
                code=code_of(case.diff, self.judge.level, spec.name, policy, self.observed),
                shrunk=shrunk,
                replayed=replayed,
            ),
        )
        if len(self.counterexamples) > known:
            self.progress.say(f"\n{self.counterexamples[case.sequence].code}\n")

    def _write(self, case: Case, *, shrunk: bool, source: Case | None = None) -> None:
        if self.corpus is None:
            return
        extra = {
            **case.observation.extra,
            "predictor": self.judge.spec.name,
            "policy": self.judge.policy or self.judge.spec.policy,
            "level": self.judge.level,
            "seed": self.seed,
            "shrunk": shrunk,
        }
        if source is not None:
            extra["from"] = case_id(source.sequence)
        self.corpus.append(replace(case.observation, id=case_id(case.sequence), extra=extra))

    def _named(self, trace: Trace) -> Trace:
        return replace(trace, id=f"s{self.seed}_{self.examples}")

    def _enough(self) -> bool:
        most = self.max_counterexamples
        return most is not None and len(self.counterexamples) >= most

    def _seconds(self) -> float:
        return time.monotonic() - self.started

    def _report(self, ended: str) -> Report:
        return Report(
            seed=self.seed,
            predictor=self.judge.spec.name,
            policy=self.judge.policy or self.judge.spec.policy,
            level=self.judge.level,
            examples=self.examples,
            disagreements=self.disagreements,
            launches=self.launches,
            blocks=self.blocks,
            occupancy=self.occupancy,
            exact=self.exact,
            counterexamples=tuple(self.counterexamples.values()),
            unstable=tuple(self.unstable),
            replayed=self.replayed,
            unpredicted=self.unpredicted,
            shrinking=self.shrinking,
            seconds=self._seconds(),
            ended=ended,
        )


def _unresolved(traces: tuple[Trace, ...]) -> tuple[Trace, ...]:
    """The counterexamples of a corpus: minimal ones, and those whose shrinking was cut short."""
    shrunk_from = {trace.extra.get("from") for trace in traces}
    wanted = {
        trace.sequence: trace
        for trace in traces
        if trace.extra.get("shrunk") is True
        or (trace.extra.get("shrunk") is False and trace.id not in shrunk_from)
    }
    return tuple(wanted.values())
