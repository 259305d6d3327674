"""State that predictions of one device share."""

from __future__ import annotations

import functools

from tbsched import _core
from tbsched.errors import shown
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec, model
from tbsched.traces.placement import DeviceInfo


@functools.lru_cache(maxsize=128)
def prepared(
    spec: DeviceSpec, policy: str
) -> tuple[_core.Model, DeviceInfo, dict[InitialState, _core.InitialState]]:
    """Returns the shared state of a device's predictions, cached as most programs use one."""
    core_model, states = model(spec, policy)
    switches = spec.mechanisms
    details = {
        "compute_capability": spec.compute_capability,
        "model": spec.name,
        "policy": policy,
        "warps_in_turn": core_model.processing_blocks() > 1 and switches.strict_round_robin,
        "configuration_per": "TPC" if switches.configuration_per_tpc else "SM",
        "topology": {
            "sms_per_tpc": spec.sms_per_tpc,
            "gpcs": [list(tpcs) for tpcs in spec.gpcs],
            "sm_preference": list(spec.sm_preference),
        },
    }
    info = DeviceInfo(spec.title, spec.sms, details)
    return core_model, info, states


def policy_of(spec: DeviceSpec, policy: str | None) -> str:
    """Returns the policy; None is the device's own.

    Raises:
        TypeError: no name.
    """
    if policy is None:
        return spec.policy
    if not isinstance(policy, str):
        raise TypeError(f"policy: a name is needed, got {shown(policy)}")
    return policy


def known_state(spec: DeviceSpec, policy: str, state: InitialState) -> _core.InitialState:
    """Returns the core's own of a latent state.

    Raises:
        TypeError, ValueError: no state, or none of the device's with this policy.
    """
    if not isinstance(state, InitialState):
        raise TypeError(f"initial_state: an InitialState is needed, got {shown(state)}")
    _, _, states = prepared(spec, policy)
    if state not in states:
        raise ValueError(
            f"initial_state: {state} is not one of {spec.name}'s initial_states({policy!r})"
        )
    return states[state]
