# Written by tests/repo/test_stubs.py.
from collections.abc import Iterable as _Iterable
from collections.abc import Sequence as _Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tbsched.program.sequence import Event as _Event

_Ints = npt.NDArray[np.int32]
_Longs = npt.NDArray[np.int64]

CAUSES: tuple[str, ...]

class DeviceSpec:
    def __init__(
        self,
        *,
        name: str,
        tpc_of_sm: _Sequence[int],
        gpc_of_sm: _Sequence[int],
        sm_preference: _Sequence[int],
        processing_blocks: int,
        blocks_per_sm: int,
        cluster_blocks_per_sm: int,
        warps_per_sm: int,
        registers_per_sm: int,
        register_unit: int,
        shared_memory_unit: int,
        shared_memory_reserve: int,
        shared_memory_configurations: _Sequence[int],
        local_memory_initial: int,
        local_memory_unit: int,
        mechanisms: Mechanisms,
        launch_order: str,
        hardware_queues: int,
        resident_grids: int,
        launch_latency_ns: int,
        completion_latency_ns: int,
        exit_latency_ns: int,
        event_latency_ns: int,
        legacy_latency_ns: int,
        launch_switch_ns: int,
    ) -> None: ...

class InitialState:
    def __init__(self, first_gpc: int, first_singleton: int) -> None: ...

class Mechanisms:
    def __init__(
        self,
        *,
        strict_round_robin: bool,
        warp_skip: bool,
        registers: str,
        shared_memory: str,
        shared_memory_configuration: bool,
        configuration_per_tpc: bool,
        configuration_headroom: bool,
        explicit_carveout_is_upper_bound: bool,
        local_memory_configuration: bool,
        clusters_seek_idle_sms: bool,
        clusters_take_whole_tpcs: bool,
    ) -> None: ...

class Model:
    def __init__(self, spec: DeviceSpec, policy: str) -> None: ...

class Sequence:
    def __init__(self, events: _Iterable[_Event]) -> None: ...

def capacities(
    model: Model, sequence: Sequence, state: InitialState
) -> list[tuple[npt.NDArray[np.int32], tuple[str, ...]]]: ...
def launch_orders() -> list[tuple[str, str, str]]: ...
def matching_state(
    model: Model, sequence: Sequence, states: _Sequence[InitialState], smid: npt.NDArray[np.int32]
) -> int | None: ...
def matching_states(
    model: Model,
    cells: npt.NDArray[np.int32],
    bounds: npt.NDArray[np.int64],
    states: _Sequence[InitialState],
    smid: _Sequence[npt.NDArray[np.int32]],
    threads: int,
) -> list[int]: ...
def policies() -> list[tuple[str, str, str]]: ...
def predict(
    model: Model, sequence: Sequence, state: InitialState, warp_slots: bool
) -> list[
    tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], str | None, npt.NDArray[np.int32] | None]
]: ...
def predict_many(
    model: Model,
    sequences: _Sequence[Sequence],
    state: InitialState,
    launch_interval_ns: int,
    warp_slots: bool,
    threads: int,
) -> list[Any]: ...
def predict_timeline(
    model: Model, sequence: Sequence, state: InitialState, issue_ns: _Sequence[int]
) -> tuple[tuple[_Ints, _Longs, _Longs], tuple[_Ints, _Ints, _Longs, _Longs, _Ints], _Ints]: ...
def predict_until_refused(
    model: Model,
    cells: npt.NDArray[np.int32],
    bounds: npt.NDArray[np.int64],
    state: InitialState,
    threads: int,
) -> list[tuple[_Ints, int]]: ...
