"""State that predictions of one device share."""

from __future__ import annotations

import functools
from typing import TypeAlias

from tbsched import _core
from tbsched.errors import shown
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec, model
from tbsched.prediction.own_policy import Choices
from tbsched.traces.placement import DeviceInfo

Prepared: TypeAlias = tuple[_core.Model, DeviceInfo, dict[InitialState, _core.InitialState]]


def prepared(spec: DeviceSpec, policy: str | Choices) -> Prepared:
    """Returns the core's model of a device, what traces say of it, and its latent states.

    Args:
        spec: the device.
        policy: the name of a row of the table, or the recorded choices of a Python function, which
            the model then repeats.
    """
    if isinstance(policy, str):
        return _prepared(spec, policy, id(spec.provenance))
    core_model = _core.Model(spec, policy.repeated())
    ((state, _),) = core_model.states()
    return core_model, _info(spec, policy.policy, core_model), {InitialState(): state}


@functools.lru_cache(maxsize=128)
def _prepared(spec: DeviceSpec, policy: str, provenance: int) -> Prepared:
    """Returns :func:`prepared` of a policy by name, from a cache.

    Args:
        spec, policy: as for :func:`prepared`.
        provenance: the id of ``spec.provenance``: devices that compare equal may differ in it.
    """
    core_model, states = model(spec, policy)
    return core_model, _info(spec, policy, core_model), states


def _info(spec: DeviceSpec, policy: str, core_model: _core.Model) -> DeviceInfo:
    """Returns what a predicted trace says of its device."""
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
    return DeviceInfo(spec.title, spec.sms, details, spec.assumed_fields(policy))


def policy_of(spec: DeviceSpec, policy: object) -> str:
    """Returns the name of the policy that is asked for; None stands for the device's own. Raises
    TypeError: neither None nor a name."""
    if policy is None:
        return spec.policy
    if not isinstance(policy, str):
        raise TypeError(f"policy: a name is needed, got {shown(policy)}")
    return policy


def known_state(spec: DeviceSpec, policy: str | Choices, state: InitialState) -> _core.InitialState:
    """Returns the core's value of a latent state. Raises TypeError or ValueError: not a state, or
    not one that the device has with this policy."""
    if not isinstance(state, InitialState):
        raise TypeError(f"initial_state: an InitialState is needed, got {shown(state)}")
    _, _, states = prepared(spec, policy)
    if state not in states:
        raise ValueError(
            f"initial_state: {state} is not one of {spec.name}'s initial_states({policy!r})"
            if isinstance(policy, str)
            else f"initial_state: policy {policy.policy!r} has none, got {state}"
        )
    return states[state]
