"""Hypothesis draws one by one: slower, but it tries variations of what it drew before."""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.campaigns.drawing.drawer import Ended
from tbsched.campaigns.judge import Comparison
from tbsched.campaigns.shrinking.shrinker import Shrinker
from tbsched.campaigns.space.search import EXAMPLES_PER_SEARCH, OutOfTime, search
from tbsched.campaigns.trials import Trials
from tbsched.program.sequence import Sequence


@dataclass(slots=True)
class ByHypothesis:
    """A drawer for any strategy.

    Attributes:
        climb: whether Hypothesis tries to fill the GPU.
        searches: how many there were.
        fullness: warps that were placed of the sequence drawn last.
    """

    trials: Trials
    shrinker: Shrinker
    climb: bool
    searches: int = 0
    fullness: float = 0.0

    def until_found(self) -> Ended | None:
        """See :class:`tbsched.campaigns.drawing.drawer.Drawer`."""
        while (before := self.trials.left) > 0:
            wanted = min(EXAMPLES_PER_SEARCH, before)
            try:
                failing = search(
                    self.shrinker.space.strategy,
                    self._fails,
                    examples=wanted,
                    seed=f"{self._seed}:{self.searches}",
                    shrink_seconds=self.shrinker.half,
                    score=(lambda: self.fullness) if self.climb else None,
                )
            except OutOfTime:
                return self.trials.ended
            self.searches += 1
            if failing is not None:
                return None
            if before - self.trials.left < wanted:
                return "exhausted"
        return "examples"

    @property
    def _seed(self) -> str:
        seed, begin = self.shrinker.origin.seed, self.trials.begin
        return f"{seed}:{begin}" if begin else f"{seed}"

    def _fails(self, drawn: Sequence) -> bool:
        # Once one fails, Hypothesis draws no more: it shrinks.
        return self._drawn(drawn) if self.shrinker.best is None else self.shrinker.fails(drawn)

    def _drawn(self, drawn: Sequence) -> bool:
        """Predicts and observes a drawn sequence, counts it, and returns whether they disagree."""
        trials = self.trials
        if trials.over:
            raise OutOfTime
        trials.count()
        prediction = trials.predict(drawn, trials.number - 1)
        if prediction is None:
            return False
        comparison: Comparison | None = None
        with trials.tally.counting_unstable(prediction.sequence):
            comparison = trials.judge.look(prediction)
        if comparison is None:
            return False
        if self.climb:
            self.fullness = _warps_placed(comparison)
        return trials.is_news(comparison) and self.shrinker.begin(comparison)


def _warps_placed(comparison: Comparison) -> float:
    placed = zip(comparison.sequence.launches, comparison.prediction, strict=True)
    return float(sum(-(-launch.threads // 32) * placement.placed for launch, placement in placed))
