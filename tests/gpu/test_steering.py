"""A real H200 starts from a known state: it repeats itself block by block, as predicted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import tbsched as tb
from tbsched.campaigns import SequenceOptions
from tbsched.launcher.observe import Gpu
from tbsched.program.sequence import Sequence
from tbsched.strategies import sequences

pytestmark = pytest.mark.tbsched_gpu

STATES = tb.device("h200").initial_states()
OPTIONS = SequenceOptions(max_launches=4, releases=False, clusters=(1, 2, 4))


def test_every_state_is_reached(hopper: Gpu) -> None:
    before = None
    for goal in (*STATES, *STATES[::-5], *STATES[::7]):
        found = tb.steer(hopper, "h200", goal)
        assert before in (None, found), "the GPU stays where it was left"
        before = goal


@pytest.mark.parametrize("state", [STATES[0], STATES[7], STATES[18], STATES[29]])
def test_steered_runs_are_equal_block_by_block_and_as_predicted(
    hopper: Gpu, state: tb.InitialState
) -> None:
    steered = tb.Steered(hopper, "h200", state)

    @seed(30)
    @settings(
        max_examples=50,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(seq=sequences("h200", OPTIONS))
    def check(seq: Sequence) -> None:
        prediction = tb.predict(seq, "h200", initial_state=state)
        if any(launch.limiter is not None for launch in prediction):
            return  # what waits is placed in a race
        first, second = steered.observe(seq), steered.observe(seq)
        for expected, one, other in zip(prediction, first, second, strict=True):
            np.testing.assert_array_equal(one.smid, other.smid)
            np.testing.assert_array_equal(one.smid, expected.smid)

    check()
