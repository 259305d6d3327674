"""A campaign as fast as the GPU: sequences are rows of numbers, until one of them disagrees."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tbsched.errors import DeadlineExceeded, UnstableMeasurement
from tbsched.event_table import EventTable
from tbsched.fuzz.draws import Draw, DrawnTable
from tbsched.fuzz.judge import Judge
from tbsched.observe import Smids
from tbsched.predict_tables import explaining_states, predict_until_refused
from tbsched.trace import Int32Array

# A quarter of the processors, so that the launcher's threads never wait for one.
THREADS = max(1, min(4, (os.cpu_count() or 1) // 4))


@dataclass(frozen=True, slots=True)
class Agreed:
    """Sequences that agree, and how many of their launches do at which level."""

    examples: int
    launches: int
    blocks: int
    occupancy: int
    exact: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """A sequence that does not seem to agree; with an error, it was not observed at all."""

    draw: Draw
    error: UnstableMeasurement | DeadlineExceeded | None


@dataclass(frozen=True, eq=False, slots=True)
class _Predicted:
    drawn: DrawnTable
    table: EventTable
    smids: list[Int32Array]


class Tables:
    """Predicts, observes and compares; what disagrees is given back as it was drawn.

    Args:
        judge: has predictor and oracle, one that observes tables.
        drawn: taken as the oracle comes to them.
    """

    def __init__(self, judge: Judge, drawn: Iterator[DrawnTable]) -> None:
        self._judge = judge
        self._predicted: Iterator[_Predicted] = map(self._predict, drawn)
        self._taken: deque[_Predicted] = deque()
        self._found: deque[Agreed | Suspect] = deque()

    def outcomes(self) -> Generator[Agreed | Suspect, None, None]:
        """In order, but for those that agree; once closed, the next call goes on there."""
        yield from self._left()
        self._predicted = itertools.chain(tuple(self._taken), self._predicted)
        self._taken.clear()
        oracle = self._judge.tables
        assert oracle is not None
        observed = oracle.observe_tables(self._tables(), settle=self._judge.settle)
        with contextlib.closing(observed):
            for seen in observed:
                self._compare(self._taken.popleft(), seen)
                yield from self._left()

    def _left(self) -> Iterator[Agreed | Suspect]:
        while self._found:
            yield self._found.popleft()

    def _tables(self) -> Iterator[EventTable]:
        for predicted in self._predicted:
            self._taken.append(predicted)
            yield predicted.table

    def _predict(self, drawn: DrawnTable) -> _Predicted:
        judge = self._judge
        table, smids = predict_until_refused(
            drawn.event_table(), judge.spec, judge.policy_name, judge.states[0], THREADS
        )
        return _Predicted(drawn, table, smids)

    def _compare(self, predicted: _Predicted, seen: list[Smids]) -> None:
        errors = [None if isinstance(smids, np.ndarray) else smids for smids in seen]
        # What was not observed is compared with itself, and not counted.
        observed = [
            smids if isinstance(smids, np.ndarray) else own
            for smids, own in zip(seen, predicted.smids, strict=True)
        ]
        table = predicted.table
        occupancy, exact = self._alike(table, predicted.smids, observed)
        launches = table.launches
        agrees = occupancy == launches
        if self._judge.level == "exact":
            exact = self._explain(table, observed, launches, agrees, exact)
            agrees = exact == launches
        agrees &= [error is None for error in errors]
        blocks = np.array([len(smids) for smids in observed])
        self._found.append(
            Agreed(
                examples=int(agrees.sum()),
                launches=int(launches[agrees].sum()),
                blocks=int(blocks[agrees].sum()),
                occupancy=int(occupancy[agrees].sum()),
                exact=int(exact[agrees].sum()),
            )
        )
        for number in np.flatnonzero(~agrees).tolist():
            self._found.append(Suspect(predicted.drawn.draw(number), errors[number]))

    def _alike(
        self, table: EventTable, a: list[Int32Array], b: list[Int32Array]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """How many launches of each sequence are alike in blocks per SM, and in every block."""
        blocks = table.launch_blocks
        launch = np.repeat(np.arange(len(blocks)), blocks)
        sm_a, sm_b = np.concatenate(a), np.concatenate(b)
        places = self._judge.spec.sms + 1

        def counts(sm: Int32Array) -> npt.NDArray[np.int64]:
            bins = np.bincount(launch * places + sm + 1, minlength=len(blocks) * places)
            return bins.reshape(-1, places)

        occupancy = (counts(sm_a) == counts(sm_b)).all(axis=1)
        exact = np.bincount(launch, sm_a != sm_b, minlength=len(blocks)) == 0
        sequence = np.repeat(np.arange(len(table)), table.launches)
        return tuple(  # type: ignore[return-value]
            np.bincount(sequence, same, minlength=len(table)).astype(np.int64)
            for same in (occupancy, exact)
        )

    def _explain(
        self,
        table: EventTable,
        observed: list[Int32Array],
        launches: npt.NDArray[np.int64],
        occupancy: npt.NDArray[np.bool_],
        exact: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """How many launches are alike in every block, from whichever state explains them all."""
        judge = self._judge
        which = occupancy & (exact < launches)
        if not which.any() or len(judge.states) == 1:
            return exact
        smids = [observed[number] for number in np.flatnonzero(which).tolist()]
        found = explaining_states(
            table.chosen(which), smids, judge.spec, judge.policy_name, judge.states, THREADS
        )
        explained = np.array([state is not None for state in found])
        states = [state for state in found if state is not None]
        if states:
            judge.prefer(max(set(states), key=states.count))
        exact = exact.copy()
        exact[np.flatnonzero(which)[explained]] = launches[which][explained]
        return exact
