"""Hypothesis's part: draws sequences, and shrinks the first that fails."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable

from hypothesis import HealthCheck, Phase, given, settings, target
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase, choices_to_bytes

from tbsched.program.sequence import Sequence

# Hypothesis remembers every example of one search, about 10 KB each.
EXAMPLES_PER_SEARCH = 2000


class _Failed(Exception):
    """How a test tells Hypothesis."""


class OutOfTime(BaseException):
    """Ends a search: passes through Hypothesis, which takes an ``Exception`` for a failing test."""


class _ShrunkEnough(BaseException):
    """Ends a search whose time to shrink is over: Hypothesis would go on to draw for seconds."""


class _Aborted(BaseException):
    """Carries an error of the property through Hypothesis."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class _StartingPoint(ExampleDatabase):
    """An example database with one entry, so that Hypothesis begins by shrinking that."""

    def __init__(self, choices: tuple[int | bytes, ...]) -> None:
        super().__init__()
        self._choices = choices_to_bytes(choices)

    def fetch(self, key: bytes) -> Iterable[bytes]:
        # Under the key itself are such as are minimal already.
        return [self._choices] if key.endswith(b".secondary") else []

    def save(self, key: bytes, value: bytes) -> None:
        """Nothing is kept."""

    def delete(self, key: bytes, value: bytes) -> None:
        """Nothing is kept."""


def search(
    strategy: st.SearchStrategy[Sequence],
    fails: Callable[[Sequence], bool],
    *,
    examples: int,
    seed: str,
    shrink_seconds: float,
    score: Callable[[], float] | None = None,
    start: tuple[int | bytes, ...] | None = None,
) -> Sequence | None:
    """Returns the smallest sequence found on which ``fails`` is true, or None.

    Args:
        strategy: what is drawn from.
        fails: the property, called once per drawn sequence and then once per smaller one.
        examples: draws at most, up to :data:`EXAMPLES_PER_SEARCH`.
        seed: of the draws.
        shrink_seconds: after so long no smaller sequence is tried any more.
        score: of the sequence just tested; Hypothesis climbs towards higher ones.
        start: the choices with which the strategy draws a sequence that fails: nothing else is
            drawn, and that one is shrunk.

    Raises:
        whatever ``fails`` raises.
    """
    verdicts: dict[Sequence, bool] = {}
    deadline = float("inf")

    def condition(sequence: Sequence) -> bool:
        """Returns whether a sequence fails, the same at each call; raises after the deadline."""
        nonlocal deadline
        # Many of Hypothesis's drafts are the same sequence, and Hypothesis fails if the verdict on
        # a sequence changes.
        if verdicts and sequence in verdicts:
            return verdicts[sequence]
        if time.monotonic() > deadline:
            raise _ShrunkEnough
        try:
            failed = fails(sequence)
        except Exception as error:
            raise _Aborted(error) from None
        if score is not None:
            target(score())
        if failed and not verdicts:
            deadline = time.monotonic() + shrink_seconds
        if failed or verdicts:
            verdicts[sequence] = failed
        return failed

    smallest: Sequence | None = None
    phases = [Phase.reuse if start is not None else Phase.generate, Phase.shrink]

    # The settings come last: a seed takes the database away.
    @settings(
        max_examples=examples,
        database=None if start is None else _StartingPoint(start),
        phases=phases if score is None else [*phases, Phase.target],
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        derandomize=False,
    )
    @seeded(random.Random(seed).getrandbits(64))
    @given(strategy)
    def test(sequence: Sequence) -> None:
        nonlocal smallest
        if condition(sequence):
            smallest = sequence
            raise _Failed

    try:
        test()
    except (_Failed, _ShrunkEnough):
        return smallest
    except _Aborted as aborted:
        raise aborted.error from aborted.error.__cause__
    return None
