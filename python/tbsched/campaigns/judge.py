"""One sequence, predicted, observed and compared."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tbsched.campaigns.oracles import Company, ManyOracle, prefix, takes_tables
from tbsched.campaigns.order import Pair, order_differs
from tbsched.comparison.compare import Diff, check_level, compare
from tbsched.comparison.verify import as_it_raced, races
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.launcher.observe import SETTLE
from tbsched.prediction.model import known_state
from tbsched.prediction.predict import matching_state, predict, predict_as_recorded
from tbsched.program.sequence import Release, Sequence
from tbsched.traces.oracle import Oracle
from tbsched.traces.placement import Room
from tbsched.traces.trace import Trace

# Settling time of hasty observations, in seconds. One that disagrees with the prediction is
# repeated with the full time; no one of 2.4 million launches on an H200 needed that.
HASTY_SETTLE = 0.0001
# One sequence in this many goes on behind a launch that does not fit; options can ask for all.
UNCUT_EVERY = 64
# Further runs of a program whose order differs: two wakings of a thread are often late, four are
# not.
RUNS_IN_ORDER = 3


@dataclass(frozen=True, eq=False, slots=True)
class Comparison:
    """A sequence on which prediction and oracle were compared.

    Attributes:
        diff: of prediction and observation, from the latent state that explains it best.
        agrees: at the level of the judge; a program that a GPU has run, in the order of launches.
        state: the latent state of the prediction.
        pairs: launches of such a program whose order the model does not explain.
    """

    diff: Diff
    agrees: bool
    state: InitialState
    pairs: tuple[Pair, ...] = ()

    @property
    def sequence(self) -> Sequence:
        return self.diff.a.sequence

    @property
    def prediction(self) -> Trace:
        return self.diff.a

    @property
    def observation(self) -> Trace:
        return self.diff.b


class Judge:
    """Compares a predictor with an oracle, at one level.

    Args:
        oracle: what is right.
        spec, policy: the predictor.
        initial_state: the latent state that it starts from; None: any of them counts as
            agreement. At level ``occupancy`` the first stands for all where there are no clusters.
        level: ``occupancy`` or ``exact``.
        past_refusal: keep what comes after a launch that is predicted not to fit; None: where
            :meth:`predict` is told to. Where blocks then find room while others leave, the observed
            outcome counts as agreement if it is a possible one, at level ``occupancy``.
        hasty: look at a GPU only for so long at first; not where observations are kept.
        company: other processes on the GPU, of an oracle that may be wrapped.

    Attributes:
        many: the oracle, if it is one that can observe many sequences.
        tables: the oracle, if it is one that takes tables of events.
        company: other processes on the GPU.
        settle: seconds of a first look by such an oracle.
        policy_name: of the predictor.
        any_state: whether a GPU may start from any of its latent states.
        states: that predictions may start from. The latest that explained an observation comes
            first: it usually explains the next.
    """

    def __init__(
        self,
        oracle: Oracle,
        spec: DeviceSpec,
        policy: str | None,
        initial_state: InitialState | None,
        level: str,
        past_refusal: bool | None,
        hasty: bool,
        company: Company | None = None,
    ) -> None:
        self.oracle = oracle
        self.company = Company(oracle) if company is None else company
        self.spec = spec
        self.policy = policy
        self.level = check_level(level)
        self.past_refusal = past_refusal
        self.many = oracle if isinstance(oracle, ManyOracle) else None
        self.tables = oracle if takes_tables(oracle) else None
        self.settle = HASTY_SETTLE if hasty else SETTLE
        self.any_state = initial_state is None
        self.policy_name = spec.policy if policy is None else policy
        self.states = [*spec.initial_states(policy)]
        if initial_state is not None:
            known_state(spec, self.policy_name, initial_state)
            self.states = [initial_state]

    def predict(self, drawn: Sequence, *, whole: bool = False) -> Trace:
        """Returns the prediction, cut after the first launch that is not placed whole.

        Waiting for a launch that does not fit is what costs time on hardware, and all that a full
        GPU has left to show is in what order launches wait.

        Args:
            drawn: a sequence.
            whole: the launches behind it are kept, up to the first release that may let in one
                that waits. What comes then does not repeat on hardware: blocks leave one by one,
                and each lets others in.
        """
        prediction = predict(drawn, self.spec, self.policy, self.states[0])
        refused = (k for k, placement in enumerate(prediction, 1) if np.any(placement.smid < 0))
        if self.past_refusal or (first := next(refused, None)) is None:
            return prediction
        return _cut(prediction, _until_released(prediction) if whole else first)

    def look(self, prediction: Trace) -> Comparison:
        """Returns the comparison of a prediction with an observation; a hasty observation, unless
        it disagrees.

        Raises:
            UnstableMeasurement, DeadlineExceeded: as the oracle.
        """
        if self.many is None:
            return self.judge(prediction)
        first = self.many.observe(prediction.sequence, settle=self.settle)
        return self.after_first_look(prediction, first)

    def after_first_look(self, prediction: Trace, first: Trace) -> Comparison:
        """Returns the comparison of a prediction with ``first``, or with another observation if
        ``first`` was a hasty one and disagrees.

        Raises:
            UnstableMeasurement, DeadlineExceeded: as the oracle.
        """
        comparison = self._compared(prediction, first)
        hasty = self.many is not None and self.settle < SETTLE
        return self.judge(prediction) if hasty and not comparison.agrees else comparison

    def judge(self, prediction: Trace) -> Comparison:
        """Observes a predicted sequence, and returns the comparison.

        Raises:
            UnstableMeasurement, DeadlineExceeded: as the oracle.
        """
        return self._compared(prediction, self.oracle.observe(prediction.sequence))

    def _compared(self, prediction: Trace, observation: Trace) -> Comparison:
        """Returns the comparison of a prediction with an observation. Of a sequence with a race,
        what is predicted is how the race was observed to end."""
        state = self.states[0]
        if prediction.sequence.timed and observation.issue_times is not None:
            return self._compared_in_order(observation)
        if races(prediction):
            # The order of leaving changes the latent state, which block numbers depend on.
            played = as_it_raced(prediction, observation, self.spec, self.policy, state)
            diff = compare(played, observation)
            return Comparison(diff, diff.occupancy, state)
        diff = compare(prediction, observation)
        clusters = any(launch.cluster > 1 for launch in prediction.sequence.launches)
        # With clusters, some policies' state shows in the blocks per SM (not that of Hopper).
        one_state = len(self.states) == 1 or not (clusters or self.level == "exact")
        if diff.agrees(self.level) or one_state:
            return Comparison(diff, diff.agrees(self.level), state)
        states = self.states
        explaining_state = matching_state(observation, self.spec, self.policy, states)
        if explaining_state is None and not diff.occupancy and not clusters:
            return Comparison(diff, False, state)
        if explaining_state is not None:
            self.states.remove(explaining_state)
            self.states.insert(0, explaining_state)
            states = [explaining_state]
        for other_state in states:
            other_diff = compare(
                predict(prediction.sequence, self.spec, self.policy, other_state), observation
            )
            if _score(other_diff) > _score(diff):
                diff, state = other_diff, other_state
        return Comparison(diff, diff.agrees(self.level), state)

    def _compared_in_order(self, observation: Trace) -> Comparison:
        """Returns the comparison of a timed program with a prediction that has its recorded races.
        It agrees if all pairs of launches have the same order."""
        state = None if self.any_state else self.states[0]
        pairs = order_differs(observation, self.spec, self.policy, state)
        played = predict_as_recorded(observation, self.spec, self.policy, state)
        return Comparison(compare(played, observation), not pairs, self.states[0], pairs)

    def _again_in_order(self, comparison: Comparison) -> Comparison | None:
        """Runs a program some more times. Returns the last comparison if a pair of launches differs
        in order in all of them; None: none does."""
        repeated, pairs = comparison, set(comparison.pairs)
        for _ in range(RUNS_IN_ORDER):
            repeated = self.judge(comparison.prediction)
            pairs &= set(repeated.pairs)
            if not pairs:
                return None
        self.company.refuse()
        return replace(repeated, pairs=tuple(sorted(pairs)))

    def confirm(self, comparison: Comparison) -> Comparison | None:
        """Observes a disagreement once more, and returns the new comparison; None: it agrees, or
        differs from the one before, so the oracle does not agree with itself.

        That of a program is observed three times more.

        Raises:
            UnstableMeasurement, DeadlineExceeded: as the oracle.
            SharedGpu: another process uses the GPU, so that it may be that one's doing.
        """
        if comparison.pairs:
            return self._again_in_order(comparison)
        repeated = self.judge(comparison.prediction)
        if repeated.agrees or not compare(comparison.observation, repeated.observation).occupancy:
            return None
        self.company.refuse()
        return repeated


def _until_released(prediction: Trace) -> int:
    """Returns how many launches precede the first release that may let a waiting launch enter."""
    waiting: list[int] = []
    launches_before = 0
    for event in prediction.sequence.events:
        if isinstance(event, Release) and waiting:
            released_sms = set(prediction[event.launch].smid.tolist())
            if -1 in released_sms or any(
                _may_enter(prediction, launch, released_sms) for launch in waiting
            ):
                break
        for _ in event.launches:
            if np.any(prediction[launches_before].smid < 0):
                waiting.append(launches_before)
            launches_before += 1
    return launches_before


def _may_enter(prediction: Trace, launch: int, sms: set[int]) -> bool:
    """Returns whether a waiting launch may enter when blocks leave these SMs."""
    partition = prediction.sequence.launches[launch].partition
    if partition is None or prediction[launch].limiter == "local_memory":
        return True
    return not sms.isdisjoint(partition.sms)


def _cut(prediction: Trace, launches: int) -> Trace:
    """Returns the prediction for the first launches; those that wait do so to the end."""
    capacities = prediction.capacities
    assert capacities is not None
    sequence = prefix(prediction.sequence, launches)
    launch_count = len(sequence.launches)
    return replace(
        prediction,
        sequence=sequence,
        placements=tuple(
            replace(placement, final_smid=placement.smid)
            for placement in prediction.placements[:launch_count]
        ),
        capacities=functools.partial(_first, capacities, launch_count),
    )


def _first(capacities: Callable[[], tuple[Room, ...]], launch_count: int) -> tuple[Room, ...]:
    return capacities()[:launch_count]


def _score(diff: Diff) -> tuple[bool, int]:
    return diff.occupancy, sum(launch.exact for launch in diff.launches)
