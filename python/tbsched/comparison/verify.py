"""How often a predictor agrees with recorded traces: the ladder of policies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tbsched.comparison.compare import Diff, compare
from tbsched.hardware.catalogue import device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict, predict_as_recorded
from tbsched.program.checks import instance, items
from tbsched.shown import Shown
from tbsched.traces.trace import Trace


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Score(Shown):
    """The agreement of one predictor with traces; prints as a table.

    Attributes:
        device: the model's name.
        policy: its policy.
        sequences: how many were compared.
        launches: how many were compared.
        occupancy: number of launches with the same number of blocks on each SM.
        exact: number of launches with every block on the same SM, from the initial state that suits
            the sequence best.
        whole: number of sequences all of whose launches agree in occupancy.
        skipped: the ``id`` of each sequence that the model refuses, and why.
        misses: a :class:`Diff` for each sequence that differs in occupancy.

    Example:
        >>> traces = [tb.predict(tb.Sequence([tb.Launch(41, 512, 32)]), "rtx3090")]
        >>> score = tb.verify(traces, "rtx3090", "round_robin")
        >>> score.launches, score.occupancy, score.exact, score.agrees
        (1, 1, 1, True)
    """

    device: str
    policy: str
    sequences: int
    launches: int
    occupancy: int
    exact: int
    whole: int
    skipped: tuple[tuple[str, str], ...]
    misses: tuple[Diff, ...]

    @property
    def agrees(self) -> bool:
        """Whether every launch agrees in occupancy. False where no sequence was compared."""
        return self.sequences > 0 and self.occupancy == self.launches


def verify(
    traces: Iterable[Trace],
    device: str | os.PathLike[str] | DeviceSpec = "h200",
    policy: str | None = None,
    on_sequence: Callable[[], None] | None = None,
) -> Score:
    """Scores a predictor against recorded traces.

    Blocks that find room while others leave go where the recording has them, if they can (see
    :func:`tbsched.predict_as_recorded`). All others are predicted.

    Args:
        traces: what hardware did.
        device, policy: the predictor, as for :func:`tbsched.predict`.
        on_sequence: called after each sequence, for a progress bar.

    Returns:
        A :class:`Score`. Sequences that the model refuses are counted apart.

    Raises:
        TypeError, ValueError: unknown device or policy, or traces of a GPU with other SMs.

    Example:
        >>> recorded = tb.predict(tb.Sequence([tb.Launch(132, 512, 32)]), "h200", "first_fit")
        >>> [tb.verify([recorded], "h200", row).agrees for row in ("first_fit", "hopper")]
        [True, False]
    """
    spec = _spec(device)
    skipped: list[tuple[str, str]] = []
    diffs: list[Diff] = []
    for trace in items("verify", "traces", traces):
        instance("verify", "traces", trace, Trace)
        try:
            diffs.append(best_diff(trace, spec, policy))
        except SequenceRefusedError as error:
            skipped.append((trace.id, str(error)))
        if on_sequence is not None:
            on_sequence()
    flat = [launch for diff in diffs for launch in diff.launches]
    return Score(
        device=spec.name,
        policy=policy or spec.policy,
        sequences=len(diffs),
        launches=len(flat),
        occupancy=sum(launch.occupancy for launch in flat),
        exact=sum(launch.exact for launch in flat),
        whole=sum(diff.occupancy for diff in diffs),
        skipped=tuple(skipped),
        misses=tuple(diff for diff in diffs if not diff.occupancy),
    )


class SequenceRefusedError(ValueError):
    """The model cannot predict this sequence (it uses what is not modelled)."""


def best_diff(trace: Trace, spec: DeviceSpec, policy: str | None = None) -> Diff:
    """Returns the comparison from the initial state that explains most of the trace.

    Raises:
        SequenceRefusedError: the model refuses the sequence.
    """
    best: Diff | None = None
    for state in spec.initial_states(policy):
        try:
            prediction = predict(trace.sequence, spec, policy, state)
            prediction = as_it_raced(prediction, trace, spec, policy, state)
        except ValueError as error:
            raise SequenceRefusedError(str(error)) from None
        diff = compare(prediction, trace)
        if best is None or _agreement(diff) > _agreement(best):
            best = diff
        if best.exact:
            break
    assert best is not None  # a spec has at least one state
    return best


def as_it_raced(
    prediction: Trace,
    observation: Trace,
    spec: DeviceSpec,
    policy: str | None,
    state: InitialState,
) -> Trace:
    """Returns the prediction of an observed sequence, in which races end as they did there.

    A replay does not find every order in which blocks can leave. So a prediction that agrees stays.

    Raises:
        TypeError, ValueError: as :func:`tbsched.predict`.
    """
    known = all(placement.final_smid is not None for placement in observation)
    if prediction.sequence.timed or not known or not races(prediction):
        return prediction
    played = predict_as_recorded(observation, spec, policy, state)
    if not compare(played, observation).occupancy and compare(prediction, observation).occupancy:
        return prediction
    return played


def races(prediction: Trace) -> bool:
    """Returns whether blocks are predicted to find room while others leave."""
    return any(p.final_smid is not None and np.any(p.smid != p.final_smid) for p in prediction)


_spec = device  # verify() has a parameter of that name


def _agreement(diff: Diff) -> tuple[int, int]:
    launches = diff.launches
    return sum(launch.occupancy for launch in launches), sum(launch.exact for launch in launches)
