"""A device under a policy as the core has it: what predictions of one device have in common."""

from __future__ import annotations

import functools

from tbsched import _core
from tbsched.hardware.spec import DeviceSpec, InitialState
from tbsched.traces.trace import DeviceInfo


@functools.lru_cache(maxsize=128)
def prepared(
    spec: DeviceSpec, policy: str
) -> tuple[_core.Model, DeviceInfo, dict[InitialState, _core.InitialState]]:
    """What predictions of a device have in common, kept as most programs ask about one device."""
    info = DeviceInfo(
        spec.title,
        spec.sms,
        {"compute_capability": spec.compute_capability, "model": spec.name, "policy": policy},
    )
    states = {
        state: _core.InitialState(state.first_gpc, state.first_singleton)
        for state in spec.initial_states()
    }
    return _core.Model(spec, policy), info, states
