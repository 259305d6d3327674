"""NumPy draws tables of sequences, which are observed and compared as such: as fast as the GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tbsched.campaigns.drawing.drawer import Ended, News, shrink_next
from tbsched.campaigns.drawing.tables import Tables
from tbsched.campaigns.shrinking.shrinker import Shrinker
from tbsched.campaigns.space.draws import DrawnTable, Draws
from tbsched.campaigns.tally import Agreed
from tbsched.campaigns.trials import Trials

# Sequences that are observed together: enough that Python's overhead is small, and few enough that
# a campaign ends in time.
SMALLEST_TABLE = 16
TABLE_SECONDS = 0.05


class ByTables:
    """A drawer for oracles that take tables.

    Args:
        trials, shrinker: of the campaign.
        draws: taken as the oracle comes to them.
    """

    def __init__(self, trials: Trials, shrinker: Shrinker, draws: Draws) -> None:
        self._trials = trials
        self._shrinker = shrinker
        self._tables = Tables(trials.judge, self._parts(draws), trials.coverage, trials.begin)

    def until_found(self) -> Ended | None:
        """See :class:`tbsched.campaigns.drawing.drawer.Drawer`."""
        return None if shrink_next(self._next_news, self._shrinker) else self._trials.ended

    def _parts(self, draws: Draws) -> Iterator[DrawnTable]:
        """Yields tables of drawn sequences, each of which takes about a second."""
        trials = self._trials
        remaining = trials.most
        for table in draws.tables():
            begin = 0
            while begin < len(table):
                if remaining == 0 or trials.over:
                    return
                rate = trials.tally.examples / max(trials.tally.seconds, 1e-3)
                size = max(SMALLEST_TABLE, round(rate * TABLE_SECONDS))
                part = table.part(begin, min(begin + size, begin + remaining))
                yield part
                begin += len(part)
                remaining -= len(part)

    def _next_news(self) -> News | None:
        """Returns the next draw that disagrees in a new way, with its comparison; None: the end."""
        trials = self._trials
        with contextlib.closing(self._tables.outcomes()) as outcomes:
            for outcome in outcomes:
                if isinstance(outcome, Agreed):
                    trials.count(outcome.examples)
                    trials.tally.count_agreed(outcome)
                    if trials.over:
                        return None
                    continue
                trials.count()
                sequence = outcome.draw.sequence
                with trials.tally.counting_unstable(sequence):
                    if outcome.error is not None:
                        raise outcome.error
                    prediction = trials.judge.predict(sequence, whole=outcome.repeat_uncut)
                    if outcome.repeat_uncut:
                        counted = next(k for k, each in enumerate(prediction, 1) if each.limiter)
                        trials.coverage.look_at(prediction, trials.judge.states[0], counted=counted)
                    comparison = trials.judge.judge(prediction)
                    if trials.is_news(comparison):
                        return outcome.draw, comparison
        return None
