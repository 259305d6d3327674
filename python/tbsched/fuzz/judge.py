"""One sequence, predicted, observed and compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tbsched.compare import Diff, check_level, compare
from tbsched.fuzz.oracles import prefix
from tbsched.predict import predict
from tbsched.sequence import Sequence
from tbsched.spec import DeviceSpec, InitialState
from tbsched.trace import Oracle, Trace


@dataclass(frozen=True, eq=False, slots=True)
class Case:
    """A sequence on which prediction and oracle were compared."""

    diff: Diff
    agrees: bool

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
        initial_state: the latent state that it starts from; None: at level ``exact`` any of them
            counts as agreement, at level ``occupancy`` the first stands for all.
        level: ``occupancy`` or ``exact``.
        past_refusal: keep what comes after a launch that is predicted not to fit.
    """

    def __init__(
        self,
        oracle: Oracle,
        spec: DeviceSpec,
        policy: str | None,
        initial_state: InitialState | None,
        level: str,
        past_refusal: bool,
    ) -> None:
        self.oracle = oracle
        self.spec = spec
        self.policy = policy
        self.level = check_level(level)
        self.past_refusal = past_refusal
        # The latest state that explained an observation comes first: it usually explains the next.
        self._states: list[InitialState | None] = [initial_state]
        if initial_state is None and level == "exact":
            self._states = [*spec.initial_states()]

    def predict(self, drawn: Sequence) -> Trace:
        """The prediction, cut after the first launch that is not placed whole.

        A GPU that is full has nothing more to show, and waiting for a launch that does not fit is
        what costs time on hardware.
        """
        prediction = predict(drawn, self.spec, self.policy, self._states[0])
        if self.past_refusal:
            return prediction
        for launch, placement in enumerate(prediction, 1):
            if np.any(placement.smid < 0):
                cut = prefix(drawn, launch)
                if len(cut) == len(drawn):
                    break
                return predict(cut, self.spec, self.policy, self._states[0])
        return prediction

    def judge(self, prediction: Trace) -> Case:
        """Observes the predicted sequence and compares.

        Raises:
            UnstableMeasurement, DeadlineExceeded: as the oracle.
        """
        observation = self.oracle.observe(prediction.sequence)
        diff = compare(prediction, observation)
        if diff.agrees(self.level) or not diff.occupancy:
            return Case(diff, diff.agrees(self.level))
        for state in self._states[1:]:
            other = compare(
                predict(prediction.sequence, self.spec, self.policy, state), observation
            )
            if other.exact:
                self._states.remove(state)
                self._states.insert(0, state)
                return Case(other, True)
            if _exact_launches(other) > _exact_launches(diff):
                diff = other
        return Case(diff, False)

    def confirm(self, case: Case) -> Case | None:
        """Observes a disagreement once more; None if the oracle does not agree with itself.

        Raises:
            UnstableMeasurement, DeadlineExceeded: as the oracle.
        """
        again = self.judge(case.prediction)
        if again.agrees or not compare(case.observation, again.observation).occupancy:
            return None
        return again


def _exact_launches(diff: Diff) -> int:
    return sum(launch.exact for launch in diff.launches)
