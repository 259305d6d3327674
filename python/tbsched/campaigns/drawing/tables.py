"""A campaign as fast as the GPU: sequences are rows of numbers, until one of them disagrees."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tbsched.campaigns.judge import UNCUT_EVERY, Judge
from tbsched.campaigns.oracles import THREADS
from tbsched.campaigns.space.coverage import Covering
from tbsched.campaigns.space.draws import Draw, DrawnTable
from tbsched.campaigns.tally import Agreed
from tbsched.errors import DeadlineExceeded, UnstableMeasurement
from tbsched.launcher.observe import Smids
from tbsched.prediction.tables import matching_states, predict_until_refused
from tbsched.program.arrays import Int32Array
from tbsched.program.event_table import EventTable


@dataclass(frozen=True, slots=True)
class Suspect:
    """A sequence that does not seem to agree; with an error, it was not observed at all.

    Attributes:
        repeat_uncut: it agrees as far as it was observed, and all of it is to be.
    """

    draw: Draw
    error: UnstableMeasurement | DeadlineExceeded | None
    repeat_uncut: bool


@dataclass(frozen=True, eq=False, slots=True)
class _Predicted:
    drawn: DrawnTable
    table: EventTable
    smids: list[Int32Array]
    is_cut: npt.NDArray[np.bool_]


class Tables:
    """Predicts, observes and compares; what disagrees is given back as it was drawn.

    Args:
        judge: has predictor and oracle, one that observes tables.
        drawn: taken as the oracle comes to them.
        coverage: counts what is predicted.
        begin: the number of the first sequence.
    """

    def __init__(
        self,
        judge: Judge,
        drawn: Iterator[DrawnTable],
        coverage: Covering | None = None,
        begin: int = 0,
    ) -> None:
        self._judge = judge
        self._coverage = coverage
        self._compared = begin
        # Tables start from any state, which may even show in the blocks per SM.
        self._states = [*judge.states]
        self._predicted: Iterator[_Predicted] = map(self._predict, drawn)
        self._pending: deque[_Predicted] = deque()
        self._outcomes: deque[Agreed | Suspect] = deque()

    def outcomes(self) -> Generator[Agreed | Suspect, None, None]:
        """Yields the results of draws, in order: how many in a row agree, or a draw that may
        disagree. After it is closed, another call goes on with the next draw."""
        yield from self._pop_outcomes()
        self._predicted = itertools.chain(tuple(self._pending), self._predicted)
        self._pending.clear()
        oracle = self._judge.tables
        assert oracle is not None
        observed = oracle.observe_tables(
            self._tables(), settle=self._judge.settle, any_state=self._judge.any_state
        )
        with contextlib.closing(observed):
            for table_smids in observed:
                self._compare(self._pending.popleft(), table_smids)
                yield from self._pop_outcomes()

    def _pop_outcomes(self) -> Iterator[Agreed | Suspect]:
        while self._outcomes:
            yield self._outcomes.popleft()

    def _tables(self) -> Iterator[EventTable]:
        for predicted in self._predicted:
            self._pending.append(predicted)
            yield predicted.table

    def _predict(self, drawn: DrawnTable) -> _Predicted:
        """Returns the prediction of a table of sequences, each up to its first launch that is
        refused."""
        judge = self._judge
        events = drawn.event_table()
        table, smids, limiters = predict_until_refused(
            events, judge.spec, judge.policy_name, self._states[0], THREADS
        )
        if self._coverage is not None:
            self._coverage.look(table, smids, limiters)
        return _Predicted(drawn, table, smids, np.diff(table.bounds) < np.diff(events.bounds))

    def _compare(self, predicted: _Predicted, observed_or_errors: list[Smids]) -> None:
        """Compares the prediction of a table with what was observed or the error, by sequence, and
        adds the results to the outcomes."""
        errors = [None if isinstance(smids, np.ndarray) else smids for smids in observed_or_errors]
        # What was not observed is compared with itself, and not counted.
        observed = [
            smids if isinstance(smids, np.ndarray) else predicted_smids
            for smids, predicted_smids in zip(observed_or_errors, predicted.smids, strict=True)
        ]
        table = predicted.table
        occupancy, exact = self._matching_launches(table, predicted.smids, observed)
        launches = table.launches
        agreeing = exact if self._judge.level == "exact" else occupancy
        explained = self._explained_by_other_states(table, observed, agreeing < launches)
        occupancy[explained] = exact[explained] = launches[explained]
        agrees = agreeing == launches
        agrees &= [error is None for error in errors]
        repeat_uncut = np.zeros(len(table), np.bool_)
        if self._judge.past_refusal is None:
            position = np.arange(self._compared, self._compared + len(table))
            repeat_uncut = agrees & predicted.is_cut & (position % UNCUT_EVERY == 0)
        self._compared += len(table)
        agrees &= ~repeat_uncut
        blocks = np.array([len(smids) for smids in observed])
        begin = 0
        for index in [*np.flatnonzero(~agrees).tolist(), len(table)]:
            between = slice(begin, index)
            if begin < index:
                self._outcomes.append(
                    Agreed(
                        examples=index - begin,
                        launches=int(launches[between].sum()),
                        blocks=int(blocks[between].sum()),
                        occupancy=int(occupancy[between].sum()),
                        exact=int(exact[between].sum()),
                    )
                )
            if index < len(table):
                draw = predicted.drawn.draw(index)
                self._outcomes.append(Suspect(draw, errors[index], bool(repeat_uncut[index])))
            begin = index + 1

    def _matching_launches(
        self, table: EventTable, a: list[Int32Array], b: list[Int32Array]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Returns, for each sequence, how many launches have equally many blocks on each SM in
        both, and how many have each block on the same SM; int64 (sequences,) each.

        Args:
            table: the sequences.
            a, b: of each sequence the SM of every block.
        """
        blocks = table.launch_blocks
        launch = np.repeat(np.arange(len(blocks)), blocks)
        sm_a, sm_b = np.concatenate(a), np.concatenate(b)
        bins_per_launch = self._judge.spec.sms + 1

        def counts(sm: Int32Array) -> npt.NDArray[np.int64]:
            bins = np.bincount(
                launch * bins_per_launch + sm + 1, minlength=len(blocks) * bins_per_launch
            )
            return bins.reshape(-1, bins_per_launch)

        occupancy = (counts(sm_a) == counts(sm_b)).all(axis=1)
        exact = np.bincount(launch, sm_a != sm_b, minlength=len(blocks)) == 0
        sequence = np.repeat(np.arange(len(table)), table.launches)
        return tuple(  # type: ignore[return-value]
            np.bincount(sequence, matches, minlength=len(table)).astype(np.int64)
            for matches in (occupancy, exact)
        )

    def _explained_by_other_states(
        self, table: EventTable, observed: list[Int32Array], selected: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Returns the indices of the selected sequences for which another latent state puts each
        block on the SM where it was observed."""
        indices = np.flatnonzero(selected)
        other_states = self._states[1:]
        if not indices.size or not other_states:
            return indices[:0]
        judge = self._judge
        explaining_states = matching_states(
            table.chosen(selected), [observed[index] for index in indices.tolist()], judge.spec,
            judge.policy_name, other_states, THREADS,
        )  # fmt: skip
        return indices[[state is not None for state in explaining_states]]
