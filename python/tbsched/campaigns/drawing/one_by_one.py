"""NumPy draws, one by one: while the GPU runs a sequence, others are drawn and predicted."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from typing import TypeAlias

from tbsched.campaigns.drawing.drawer import Ended, News, shrink_next
from tbsched.campaigns.shrinking.shrinker import Shrinker
from tbsched.campaigns.space.draws import Draw
from tbsched.campaigns.trials import Trials
from tbsched.errors import DeadlineExceeded, UnstableMeasurement
from tbsched.launcher.observe import Outcome
from tbsched.program.sequence import Sequence
from tbsched.traces.oracle import Oracle
from tbsched.traces.trace import Trace

_Predicted: TypeAlias = tuple[Draw, Trace]


class OneByOne:
    """A drawer for any oracle; one that can observe many sequences is kept busy.

    Args:
        trials, shrinker: of the campaign.
        draws: taken as the oracle comes to them.
    """

    def __init__(self, trials: Trials, shrinker: Shrinker, draws: Iterable[Draw]) -> None:
        self._trials = trials
        self._shrinker = shrinker
        self._predicted = self._predictions(draws)
        self._taken: deque[_Predicted] = deque()

    def until_found(self) -> Ended | None:
        """See :class:`tbsched.campaigns.drawing.drawer.Drawer`."""
        return None if shrink_next(self._next_news, self._shrinker) else self._trials.ended

    def _next_news(self) -> News | None:
        """Returns the next draw that disagrees in a new way, with its comparison; None: there are
        no more draws."""
        trials = self._trials
        with contextlib.closing(self._outcomes()) as outcomes:
            for draw, prediction, outcome in outcomes:
                trials.count()
                with trials.tally.counting_unstable(prediction.sequence):
                    if not isinstance(outcome, Trace):
                        raise outcome
                    comparison = trials.judge.after_first_look(prediction, outcome)
                    if trials.is_news(comparison):
                        return draw, comparison
        return None

    def _predictions(self, draws: Iterable[Draw]) -> Iterator[_Predicted]:
        """Yields each draw with its prediction, without draws that cannot be predicted."""
        for index, draw in enumerate(
            itertools.islice(draws, self._trials.most), self._trials.begin
        ):
            if self._trials.over:
                return
            prediction = self._trials.predict(draw.sequence, index)
            if prediction is None:
                self._trials.count()
            else:
                yield draw, prediction

    def _outcomes(self) -> Generator[tuple[Draw, Trace, Outcome], None, None]:
        """Yields draws, each with its prediction and what was observed or why nothing was. After it
        is closed, another call goes on with the next draw."""
        self._predicted = itertools.chain(tuple(self._taken), self._predicted)
        self._taken.clear()
        judge = self._trials.judge
        if judge.many is None:
            observations = _observed(judge.oracle, self._sequences())
        else:
            observations = judge.many.observe_many(self._sequences(), settle=judge.settle)
        with contextlib.closing(observations):
            for outcome in observations:
                yield *self._taken.popleft(), outcome

    def _sequences(self) -> Iterator[Sequence]:
        for predicted in self._predicted:
            self._taken.append(predicted)
            yield predicted[1].sequence


def _observed(oracle: Oracle, sequences: Iterable[Sequence]) -> Generator[Outcome, None, None]:
    """Yields what an oracle observes of each sequence, or why it could not."""
    for sequence in sequences:
        try:
            yield oracle.observe(sequence)
        except (UnstableMeasurement, DeadlineExceeded) as error:
            yield error
