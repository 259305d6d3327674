"""What holds of every program on every device that validation accepts, under every policy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from contract.random_devices.programs import held, timed
from contract.random_devices.replay import check_held, check_timed
from contract.random_devices.specs import specs
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import matching_state, policies, predict, predict_many
from tbsched.traces.trace import Trace

Property = Callable[[st.DataObject, DeviceSpec, str, InitialState], None]
# More often those that know the whole device.
POLICIES = st.sampled_from(["hopper", "algorithm1", "ampere", *(row.name for row in policies())])
ONCE = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


def held_programs_fit(
    data: st.DataObject, spec: DeviceSpec, policy: str, state: InitialState
) -> None:
    check_held(data.draw(held(spec, policy)), spec, policy, state)


def timed_programs_fit_and_keep_their_order(
    data: st.DataObject, spec: DeviceSpec, policy: str, state: InitialState
) -> None:
    interval_ns = data.draw(st.sampled_from([0, 0, 1, 2_500]))
    check_timed(data.draw(timed(spec, policy)), spec, policy, state, interval_ns)


def other_ways_to_ask_give_the_same_answer(
    data: st.DataObject, spec: DeviceSpec, policy: str, state: InitialState
) -> None:
    """Room per SM, several threads, warp slots, and the state that explains what was seen."""

    def smids(trace: Trace) -> list[list[int]]:
        return [placement.smid.tolist() for placement in trace]

    sequence = data.draw(held(spec, policy))
    one = predict(sequence, spec, policy, state)
    seen = smids(one)
    assert one.capacities is not None
    for smid, room in zip(seen, one.capacities(), strict=True):
        counts = np.bincount([sm for sm in smid if sm >= 0], minlength=spec.sms)
        # Where a block needs one gap to itself, it can leave as much room as before.
        assert spec.mechanisms.shared_memory == "contiguous" or (counts <= room.blocks).all()
    for other in predict_many([sequence] * 4, spec, policy, state, threads=4):
        assert smids(other) == seen
    if spec.mechanisms.strict_round_robin:
        assert smids(predict(sequence, spec, policy, state, warp_slots=True)) == seen
    found = matching_state(one, spec, policy, list(spec.initial_states(policy)))
    assert found is not None
    assert smids(predict(sequence, spec, policy, found)) == seen


PROPERTIES: tuple[Property, ...] = (
    held_programs_fit,
    timed_programs_fit_and_keep_their_order,
    other_ways_to_ask_give_the_same_answer,
)


def checked(holds: Property, profile: settings) -> Callable[[], None]:
    """Checks a property for what is drawn; raises where it does not hold."""

    @profile
    @given(data=st.data(), spec=specs(), policy=POLICIES)
    def check(data: st.DataObject, spec: DeviceSpec, policy: str) -> None:
        holds(data, spec, policy, data.draw(st.sampled_from(spec.initial_states(policy))))

    return check
