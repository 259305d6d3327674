"""Draws with fewer launches, to leave a local minimum when shrinking."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator

from tbsched.campaigns.drawing.tables import Suspect, Tables
from tbsched.campaigns.judge import Judge
from tbsched.campaigns.space.draws import Draws
from tbsched.program.sequence import Sequence

# Draws at most: in tables they cost a twentieth.
TABLES, ONE_BY_ONE = 12, 2000


def narrower_suspects(judge: Judge, draws: Draws, whole: bool, until: float) -> Iterator[Sequence]:
    """Yields sequences that may disagree; all draws if the oracle takes no tables.

    Args:
        judge: has predictor and oracle.
        draws: of fewer launches.
        whole: whether they are not cut behind a launch that does not fit.
        until: of the monotonic clock; nothing is drawn after it.
    """
    if judge.tables is None or judge.past_refusal or whole:
        for draw in itertools.islice(draws, ONE_BY_ONE):
            if time.monotonic() > until:
                return
            yield draw.sequence
        return
    drawn = itertools.islice(draws.tables(), TABLES)
    tables = Tables(judge, itertools.takewhile(lambda _: time.monotonic() < until, drawn))
    with contextlib.closing(tables.outcomes()) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome, Suspect) and outcome.error is None:
                yield outcome.draw.sequence
