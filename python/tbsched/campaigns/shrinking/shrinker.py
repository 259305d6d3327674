"""Shrinks one disagreement at a time: event by event, by Hypothesis if it is long, then anew."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import time
from dataclasses import dataclass, field

from tbsched.campaigns.findings import Findings
from tbsched.campaigns.judge import Comparison, Judge
from tbsched.campaigns.keeping import Corpus
from tbsched.campaigns.shrinking.minimise import Floors, minimise, size
from tbsched.campaigns.shrinking.narrower import narrower_suspects
from tbsched.campaigns.space.search import search
from tbsched.campaigns.space.space import Space
from tbsched.campaigns.tally import Tally
from tbsched.campaigns.terminal.progress import Progress
from tbsched.errors import UnstableMeasurement
from tbsched.program.sequence import Sequence
from tbsched.traces.annotations import Origin

# Disagreements with fewer launches that are collected to leave a local minimum when shrinking, and
# how many of them are shrunk.
NARROWER, NARROWER_SHRUNK = 32, 4
# Hypothesis takes seconds, and seldom makes so few launches fewer.
FEW_LAUNCHES = 4
# Attempts at seeing a shrunk disagreement twice in a row: one disturbed run must not discard it.
CONFIRMATIONS = 3


@dataclass(slots=True)
class Shrinker:
    """Turns a new disagreement into a small counterexample.

    Attributes:
        origin: of all that this campaign finds.
        seconds: after so long a disagreement is taken as it is.
        found, best: what is being shrunk, as it was found and confirmed, and the smallest that
            failed since; None while nothing is.
        whole: whether sequences are not cut behind a launch that does not fit.
        verdicts: whether each sequence that was tried fails.
        narrower: the smallest disagreement among the draws with so many launches, cut or whole.
    """

    judge: Judge
    tally: Tally
    findings: Findings
    corpus: Corpus
    progress: Progress
    space: Space
    floors: Floors
    origin: Origin
    seconds: float
    found: Comparison | None = None
    best: Comparison | None = None
    whole: bool = False
    until: float = 0.0
    verdicts: dict[Sequence, bool] = field(default_factory=dict)
    narrower: dict[tuple[int, bool], Comparison | None] = field(default_factory=dict)

    def begin(self, comparison: Comparison) -> bool:
        """Observes a disagreement again, and keeps it for shrinking if it shows again. Returns
        whether it does."""
        confirmed = None
        with self.tally.counting_unstable(comparison.sequence):
            confirmed = self._confirmed(comparison)
        if confirmed is None:
            return False
        self.resume(confirmed)
        # Written down before anything else can go wrong.
        self.corpus.keep_found(confirmed, self.origin)
        return True

    def resume(self, confirmed: Comparison) -> None:
        """Begins to shrink a confirmed disagreement."""
        self.found = self.best = confirmed
        # A disagreement that shows behind a launch that does not fit is only seen in whole.
        self.whole = any(
            (placement.smid < 0).any() for placement in confirmed.prediction.placements[:-1]
        )
        self.until = time.monotonic() + self.seconds
        self.verdicts = {}

    @property
    def half(self) -> float:
        """Seconds for Hypothesis; the other half is for what it cannot do."""
        return self.seconds / 2

    def from_choices(self, choices: tuple[int | bytes, ...]) -> None:
        """Shrinks what the strategy draws with these choices; Hypothesis does if many are left."""
        assert self.best is not None
        smallest = minimise(self.best.sequence, self._still_fails, self.floors)
        if len(smallest.launches) <= FEW_LAUNCHES:
            return
        search(
            self.space.strategy,
            self.fails,
            examples=1,
            seed=f"{self.origin.seed}:native",
            shrink_seconds=self.half,
            start=choices,
        )

    def fails(self, candidate: Sequence) -> bool:
        """Returns whether a smaller sequence still fails. Keeps the smallest one that does."""
        if time.monotonic() > self.until or self.findings.shared:
            return False
        self.tally.shrinking += 1
        self.progress.update(self.tally, "shrink")
        prediction = self.judge.predict(candidate, whole=self.whole)
        with self.tally.counting_unstable(prediction.sequence):
            comparison = self.judge.look(prediction)
            smaller = self.best and size(comparison.sequence) < size(self.best.sequence)
            if smaller and not comparison.agrees:
                self.best = comparison
            return not comparison.agrees
        return False

    def finish(self) -> None:
        """Shrinks what Hypothesis has left further, confirms it, and adds it to the findings."""
        assert self.found is not None
        smallest = self._minimal()
        while smallest is not None and len(smallest.sequence.launches) > 1:
            # A local minimum; are there disagreements with fewer launches?
            fewer = self._narrower(len(smallest.sequence.launches) - 1)
            if fewer is None or fewer.sequence in self.tally.counterexamples:
                break
            smallest = fewer
        if smallest is None or self.findings.shared:
            self.findings.add(self.found, shrunk=False)
        else:
            self.findings.add(smallest, shrunk=True)
            self.corpus.keep_shrunk(smallest, self.found, self.origin)
        self.found = self.best = None

    def give_up(self) -> None:
        """Ends shrinking: the current disagreement, if any, is reported unshrunk."""
        if self.best is not None:
            self.findings.add(self.best, shrunk=False)

    def again(self, sequence: Sequence) -> Comparison | None:
        """Returns another comparison of a sequence, confirmed if it disagrees; None: the oracle is
        unstable."""
        prediction = self.judge.predict(sequence, whole=True)
        with self.tally.counting_unstable(prediction.sequence):
            comparison = self.judge.judge(prediction)
            return comparison if comparison.agrees else self._confirmed(comparison)
        return None

    def _minimal(self) -> Comparison | None:
        """Returns the comparison of the smallest sequence so far, minimised and confirmed; None: it
        does not show again."""
        assert self.best is not None
        smallest = minimise(self.best.sequence, self._still_fails, self.floors)
        for _ in range(CONFIRMATIONS):
            comparison = self.again(smallest)
            if comparison is not None and not comparison.agrees:
                return comparison
        return None

    def _still_fails(self, candidate: Sequence) -> bool:
        """Returns whether a candidate fails; each sequence runs once."""
        if candidate not in self.verdicts:
            self.verdicts[candidate] = False
            # What the oracle refuses, or never recorded, is no smaller counterexample.
            with contextlib.suppress(ValueError):
                self.verdicts[candidate] = self.fails(candidate)
        return self.verdicts[candidate]

    def _narrower(self, launches: int) -> Comparison | None:
        """Returns the smallest disagreement among draws of sequences with this number of launches;
        None: none disagrees.

        The draws with a number of launches are the same every time, so they are compared once.
        """
        key = launches, self.whole
        if key in self.narrower:
            self.best = self.narrower[key] or self.best
            return self.narrower[key]
        narrower = self._drawn_narrower(launches)
        if time.monotonic() < self.until:
            self.narrower[key] = narrower
        return narrower

    def _drawn_narrower(self, launches: int) -> Comparison | None:
        """Returns a smaller counterexample drawn among short sequences; None if none fails."""
        draws = self.space.of_length(launches)
        if draws is None:
            return None
        suspects = narrower_suspects(self.judge, draws, self.whole, self.until)
        failing = itertools.islice(filter(self.fails, suspects), NARROWER)
        smallest = heapq.nsmallest(NARROWER_SHRUNK, failing, key=size)
        for sequence in smallest:
            minimise(sequence, self._still_fails, self.floors)
        return self._minimal() if smallest else None

    def _confirmed(self, comparison: Comparison) -> Comparison:
        """Returns the comparison of another run of a disagreeing sequence. Raises
        UnstableMeasurement: that run agrees."""
        repeated = self.judge.confirm(comparison)
        if repeated is None:
            raise UnstableMeasurement("a disagreement did not show again")
        return repeated
