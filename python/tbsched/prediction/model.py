"""What predictions of one device have in common."""

from __future__ import annotations

import functools

from tbsched import _core
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec, model
from tbsched.traces.placement import DeviceInfo


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
    core_model, states = model(spec, policy)
    return core_model, info, states
