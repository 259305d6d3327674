"""Many sequences on their way: drawn and predicted while those before them are on the GPU."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Generator, Iterable, Iterator

from tbsched.campaigns.draws import Draw
from tbsched.campaigns.judge import Judge
from tbsched.errors import DeadlineExceeded, UnstableMeasurement
from tbsched.launcher.observe import Outcome
from tbsched.program.sequence import Sequence
from tbsched.traces.oracle import Oracle
from tbsched.traces.trace import Trace

Predicted = tuple[Draw, Trace]


class Pipeline:
    """Predicted sequences, and what the oracle of a judge says of them, in order.

    Args:
        judge: has the oracle.
        predicted: taken as the oracle comes to them.
    """

    def __init__(self, judge: Judge, predicted: Iterator[Predicted]) -> None:
        self._judge = judge
        self._predicted = predicted
        self._taken: deque[Predicted] = deque()

    def outcomes(self) -> Generator[tuple[Draw, Trace, Outcome], None, None]:
        """Draw, prediction and observation of each; once closed, the next call goes on there."""
        self._predicted = itertools.chain(tuple(self._taken), self._predicted)
        self._taken.clear()
        many = self._judge.many
        if many is None:
            found = _one_by_one(self._judge.oracle, self._sequences())
        else:
            found = many.observe_many(self._sequences(), settle=self._judge.settle)
        with contextlib.closing(found):
            for outcome in found:
                yield *self._taken.popleft(), outcome

    def _sequences(self) -> Iterator[Sequence]:
        for predicted in self._predicted:
            self._taken.append(predicted)
            yield predicted[1].sequence


def _one_by_one(oracle: Oracle, sequences: Iterable[Sequence]) -> Generator[Outcome, None, None]:
    for sequence in sequences:
        try:
            yield oracle.observe(sequence)
        except (UnstableMeasurement, DeadlineExceeded) as error:
            yield error
