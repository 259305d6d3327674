# Written by tests/repo/test_stubs.py.
from collections.abc import Callable as _Callable
from collections.abc import Iterable as _Iterable
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tbsched.program.partition import Partition as _Partition
from tbsched.program.sequence import Event as _Event

_Ints = npt.NDArray[np.int32]
_Longs = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]

CAUSES: tuple[str, ...]
INSIDE_RESOURCES: tuple[str, ...]
MAX_TIMED_BLOCKS: int
OUTSIDE_RESOURCES: tuple[str, ...]

class InitialState: ...

class Model:
    def __init__(self, spec: object, policy: str | _Callable[..., Any]) -> None: ...
    def states(self) -> list[tuple[InitialState, dict[str, int]]]: ...
    def processing_blocks(self) -> int: ...

class Sequence:
    def __init__(self, events: _Iterable[_Event]) -> None: ...

def allowed_at_once(
    model: Model,
    cells: npt.NDArray[np.int32],
    bounds: npt.NDArray[np.int64],
    partitions: tuple[_Partition, ...],
) -> list[int]: ...
def capacities(
    model: Model, sequence: Sequence, state: InitialState
) -> list[tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.uint32]]]: ...
def capacity(
    model: Model, launches: Sequence, state: InitialState
) -> tuple[_Ints, npt.NDArray[np.uint8], npt.NDArray[np.uint32]]: ...
def check(spec: object) -> None: ...
def check_documented(spec: object, measured: _Sequence[str]) -> None: ...
def contention_times(
    kernels: _Sequence[tuple[_Sequence[float], _Sequence[float]]],
    sms: int,
    alone: _Sequence[_Sequence[tuple[_Sequence[tuple[int, int]], int]]],
    mixtures: _Sequence[_Sequence[tuple[_Sequence[tuple[int, int]], int]]],
) -> list[list[float]]: ...
def coresident(
    model: Model,
    launches: Sequence,
    groups: _Sequence[_Sequence[int]],
    after: _Sequence[tuple[int, int]],
    plays: int,
    only_to_prove: bool,
    seconds: float,
    solve: object,
) -> tuple[
    str,
    str,
    list[tuple[int, float, int]],
    list[tuple[int, list[int]]],
    int,
    int,
    int,
    str,
    int,
    int,
]: ...
def finds_room_after(
    model: Model,
    launches: Sequence,
    staying: int,
    configured_by: _Sequence[_Sequence[int]],
    beside: _Sequence[_Sequence[int]],
    on_sm: _Sequence[_Sequence[int]],
) -> bool: ...
def launch_orders() -> list[tuple[str, str, str]]: ...
def matching_state(
    model: Model, sequence: Sequence, states: _Sequence[InitialState], smid: npt.NDArray[np.int32]
) -> int | None: ...
def matching_states(
    model: Model,
    cells: npt.NDArray[np.int32],
    bounds: npt.NDArray[np.int64],
    partitions: tuple[_Partition, ...],
    states: _Sequence[InitialState],
    smid: _Sequence[npt.NDArray[np.int32]],
    threads: int,
) -> list[int]: ...
def outcomes(
    model: Model, sequence: Sequence, state: InitialState, races: int, seconds: float
) -> list[tuple[list[Any], int, bool]]: ...
def policies() -> list[tuple[str, str, str]]: ...
def predict(
    model: Model, sequence: Sequence, state: InitialState, warp_slots: bool
) -> list[
    tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], str | None, npt.NDArray[np.int32] | None]
]: ...
def predict_as_recorded(
    model: Model,
    sequence: Sequence,
    state: InitialState,
    seen: _Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]],
) -> list[Any]: ...
def predict_gpus(
    gpus: _Sequence[tuple[Model, InitialState]],
    sequence: Sequence,
    issue_ns: _Sequence[int] | None,
    gap_ns: _Sequence[int] | None,
    interval_ns: int,
    called_ns: _Sequence[int] | None,
) -> tuple[
    tuple[_Ints, _Longs, _Longs],
    tuple[_Ints, _Ints, _Longs, _Longs, _Ints, npt.NDArray[np.uint32]],
    _Ints,
    _Longs | None,
    tuple[_Longs, _Longs],
    tuple[_Longs, _Longs],
    tuple[
        list[tuple[int, int, str | None, int]],
        list[int],
        list[tuple[int, str, int, int]],
    ]
    | None,
]: ...
def predict_launches(
    model: Model,
    sequence: Sequence,
    state: InitialState,
    issue_ns: _Sequence[int] | None,
    gap_ns: _Sequence[int] | None,
    interval_ns: int,
    called_ns: _Sequence[int] | None,
) -> tuple[
    tuple[_Ints, _Longs, _Longs],
    tuple[_Ints, _Ints, _Longs, _Longs, _Ints, npt.NDArray[np.uint32]],
    _Ints,
    _Longs | None,
    tuple[_Longs, _Longs],
    tuple[_Longs, _Longs],
    tuple[
        list[tuple[int, int, str | None, int]],
        list[int],
        list[tuple[int, str, int, int]],
    ]
    | None,
]: ...
def predict_many(
    model: Model,
    sequences: _Sequence[Sequence],
    state: InitialState,
    launch_interval_ns: int,
    warp_slots: bool,
    threads: int,
) -> list[Any]: ...
def predict_processes(
    model: Model,
    programs: _Sequence[Sequence],
    state: InitialState,
    calls: _Sequence[
        tuple[_Sequence[int] | None, _Sequence[int] | None, int, _Sequence[int] | None]
    ],
    last: int | None,
    slots: _Sequence[int],
    slice_ns: _Sequence[int],
) -> tuple[list[Any], _Ints, _Longs, _Longs]: ...
def predict_timeline(
    model: Model,
    sequence: Sequence,
    state: InitialState,
    issue_ns: _Sequence[int] | None,
    gap_ns: _Sequence[int] | None,
    interval_ns: int,
    called_ns: _Sequence[int] | None,
    turns: _Sequence[int],
    neighbours: _Sequence[tuple[_Sequence[float], _Sequence[float]]] | None,
) -> tuple[
    tuple[_Ints, _Longs, _Longs],
    tuple[_Ints, _Ints, _Longs, _Longs, _Ints, npt.NDArray[np.uint32]],
    _Ints,
    _Longs | None,
    tuple[_Longs, _Longs],
    tuple[_Longs, _Longs],
    tuple[
        list[tuple[int, int, str | None, int]],
        list[int],
        list[tuple[int, str, int, int]],
    ]
    | None,
]: ...
def predict_until_refused(
    model: Model,
    cells: npt.NDArray[np.int32],
    bounds: npt.NDArray[np.int64],
    partitions: tuple[_Partition, ...],
    state: InitialState,
    threads: int,
) -> list[tuple[_Ints, int, str | None]]: ...
def shortest_order(
    model: Model,
    sequence: Sequence,
    orders: npt.NDArray[np.int32],
    state: InitialState,
    gap_ns: _Sequence[int] | None,
    interval_ns: int,
    limit_ns: int,
    threads: int,
) -> tuple[int, int] | None: ...
def sm_cache(
    size: tuple[int, int],
    replacement: int,
    hashed: bool,
    lines: npt.NDArray[np.uint64],
    sectors: npt.NDArray[np.uint8],
    writes: npt.NDArray[np.uint8],
) -> tuple[_Bytes, _Longs, _Bytes]: ...
def sm_check_commands(
    cycle: npt.NDArray[np.int64],
    bank: npt.NDArray[np.int32],
    kind: npt.NDArray[np.uint8],
    row: npt.NDArray[np.int64],
    config: _Mapping[str, int],
) -> None: ...
def sm_counters() -> list[tuple[str, str]]: ...
def sm_dram_commands(
    cycle: npt.NDArray[np.int64],
    address: npt.NDArray[np.uint64],
    write: npt.NDArray[np.uint8],
    config: _Mapping[str, int],
    prefetch: bool,
) -> tuple[Any, ...]: ...
def sm_parameters() -> list[tuple[str, str, int, int, int, str]]: ...
def sm_schedulers() -> list[tuple[str, str]]: ...
def sm_simulate(
    sizes: tuple[int, int],
    rows: npt.NDArray[np.int64],
    compute: npt.NDArray[np.int32],
    access: npt.NDArray[np.uint8],
    address: npt.NDArray[np.uint64],
    sectors: npt.NDArray[np.uint8],
    config: _Mapping[str, int],
    scheduler: str,
    make: _Callable[..., Any] | None,
    cores_of: npt.NDArray[np.int32],
    commands: bool,
    warps: bool,
    checked: bool,
) -> tuple[dict[str, int], _Ints, _Longs, _Longs, tuple[Any, ...], tuple[Any, ...]]: ...
def snapshot_after(
    model: Model, sequence: Sequence, state: InitialState, events: int
) -> tuple[
    tuple[_Ints, _Ints, _Ints, _Ints, npt.NDArray[np.uint64]],
    tuple[_Ints, _Ints, _Ints, _Ints],
    _Ints,
    _Ints,
    _Ints,
    _Ints,
]: ...
def snapshot_at(
    model: Model,
    sequence: Sequence,
    state: InitialState,
    issue_ns: _Sequence[int] | None,
    gap_ns: _Sequence[int] | None,
    interval_ns: int,
    called_ns: _Sequence[int] | None,
    at_ns: int,
    neighbours: _Sequence[tuple[_Sequence[float], _Sequence[float]]] | None,
) -> tuple[
    tuple[_Ints, _Ints, _Ints, _Ints, npt.NDArray[np.uint64]],
    tuple[_Ints, _Ints, _Ints, _Ints],
    _Ints,
    _Ints,
    _Ints,
    _Ints,
]: ...
def snapshot_of_gpu_at(
    gpus: _Sequence[tuple[Model, InitialState]],
    sequence: Sequence,
    issue_ns: _Sequence[int] | None,
    gap_ns: _Sequence[int] | None,
    interval_ns: int,
    called_ns: _Sequence[int] | None,
    gpu: int,
    at_ns: int,
) -> tuple[
    tuple[_Ints, _Ints, _Ints, _Ints, npt.NDArray[np.uint64]],
    tuple[_Ints, _Ints, _Ints, _Ints],
    _Ints,
    _Ints,
    _Ints,
    _Ints,
]: ...
def split_sms(
    spec: object, min_sms: int, groups: int | None, ignore_coscheduling: bool, max_cluster: bool
) -> tuple[list[list[int]], list[int]]: ...
def state_names() -> list[tuple[str, ...]]: ...
def transfers(model: Model, sequence: Sequence) -> list[tuple[bool, int, int]]: ...
