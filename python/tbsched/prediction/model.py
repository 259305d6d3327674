"""A device under a policy as the core has it: what predictions of one device have in common."""

from __future__ import annotations

import functools
from dataclasses import asdict

from tbsched import _core
from tbsched.hardware.spec import DeviceSpec, InitialState
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
    states = {
        state: _core.InitialState(state.first_gpc, state.first_singleton)
        for state in spec.initial_states()
    }
    return _core.Model(_core_spec(spec), policy), info, states


def _core_spec(spec: DeviceSpec) -> _core.DeviceSpec:
    tpc_of_sm = [sm // spec.sms_per_tpc for sm in range(spec.sms)]
    gpc_of_tpc = spec.gpc_of_tpc
    return _core.DeviceSpec(
        name=spec.name,
        tpc_of_sm=tpc_of_sm,
        gpc_of_sm=[gpc_of_tpc[tpc] for tpc in tpc_of_sm],
        sm_preference=list(spec.sm_preference),
        processing_blocks=spec.processing_blocks,
        blocks_per_sm=spec.blocks_per_sm,
        cluster_blocks_per_sm=spec.cluster_blocks_per_sm,
        warps_per_sm=spec.warps_per_sm,
        registers_per_sm=spec.registers_per_sm,
        register_unit=spec.register_unit,
        shared_memory_unit=spec.shared_memory_unit,
        shared_memory_reserve=spec.shared_memory_reserve,
        shared_memory_configurations=list(spec.shared_memory_configurations),
        local_memory_initial=spec.local_memory_initial,
        local_memory_unit=spec.local_memory_unit,
        mechanisms=_core.Mechanisms(**asdict(spec.mechanisms)),
        launch_order=spec.launch_order,
        hardware_queues=spec.hardware_queues,
        resident_grids=spec.resident_grids,
        launch_latency_ns=spec.launch_latency_ns,
        completion_latency_ns=spec.completion_latency_ns,
        exit_latency_ns=spec.exit_latency_ns,
        event_latency_ns=spec.event_latency_ns,
        legacy_latency_ns=spec.legacy_latency_ns,
        launch_switch_ns=spec.launch_switch_ns,
    )
