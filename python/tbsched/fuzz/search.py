"""Hypothesis's part: draws sequences, and shrinks the first that fails."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, find, settings, target
from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase
from hypothesis.errors import NoSuchExample

from tbsched.sequence import Sequence

# Hypothesis remembers every example of one search, about 10 KB each.
EXAMPLES_PER_SEARCH = 2000


def search(
    strategy: st.SearchStrategy[Sequence],
    fails: Callable[[Sequence], bool],
    *,
    examples: int,
    seed: str,
    shrink_seconds: float,
    database: ExampleDatabase | None = None,
    database_key: bytes = b"",
    score: Callable[[], float] | None = None,
) -> Sequence | None:
    """The smallest sequence found on which ``fails`` is true, or None.

    Args:
        strategy: what is drawn from.
        fails: the property, called once per drawn sequence and then once per smaller one.
        examples: draws at most, up to :data:`EXAMPLES_PER_SEARCH`.
        seed: of the draws.
        shrink_seconds: after so long no smaller sequence is tried any more.
        database, database_key: failing draws of earlier searches, tried first.
        score: of the sequence just tested; Hypothesis climbs towards higher ones.
    """
    verdicts: dict[Sequence, bool] = {}
    deadline = float("inf")

    def condition(sequence: Sequence) -> bool:
        nonlocal deadline
        # Many of Hypothesis's drafts are the same sequence, and a verdict that changed between two
        # of them would be an error to it.
        if verdicts and sequence in verdicts:
            return verdicts[sequence]
        if time.monotonic() > deadline:
            return False
        failed = fails(sequence)
        if score is not None:
            target(score())
        if failed and not verdicts:
            deadline = time.monotonic() + shrink_seconds
        if failed or verdicts:
            verdicts[sequence] = failed
        return failed

    phases = [Phase.reuse, Phase.generate, Phase.shrink]
    try:
        return find(
            strategy,
            condition,
            settings=settings(
                max_examples=examples,
                database=database,
                phases=phases if score is None else [*phases, Phase.target],
                deadline=None,
                suppress_health_check=list(HealthCheck),
                derandomize=False,
            ),
            random=random.Random(seed),
            database_key=database_key,
        )
    except NoSuchExample:
        return None
