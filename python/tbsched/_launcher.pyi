from collections.abc import Iterable
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from tbsched.errors import DeadlineExceeded, UnstableMeasurement
from tbsched.program.partition import Partition
from tbsched.program.sequence import Event, Launch

class Info(TypedDict):
    name: str
    sms: int
    compute_capability: str
    driver: str
    cuda: str
    uuid: str
    max_connections: int

class Queried(Info):
    mps: bool
    clusters: bool
    copy_engines: int
    threads_per_block: int
    blocks_per_sm: int
    threads_per_sm: int
    registers_per_sm: int
    shared_memory_per_sm: int
    shared_memory_reserve: int
    shared_memory_per_block: int

class Measured(TypedDict):
    smid: npt.NDArray[np.int32]
    final_smid: npt.NDArray[np.int32]
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    issued_ns: int
    warp_slots: npt.NDArray[np.int32] | None

class Batch:
    def add(
        self,
        events: Iterable[Event],
        *,
        deadline: float,
        groups: Iterable[Iterable[int]] = (),
        issue_times: Iterable[float] = (),
    ) -> None: ...
    def add_table(
        self,
        cells: npt.NDArray[np.int32],
        bounds: npt.NDArray[np.int64],
        partitions: tuple[Partition, ...],
        *,
        deadline: float,
        any_state: bool,
    ) -> None: ...
    def next(self) -> tuple[list[Measured], list[list[int]], list[bool]]: ...
    def next_smids(
        self, count: int
    ) -> list[npt.NDArray[np.int32] | UnstableMeasurement | DeadlineExceeded]: ...
    def close(self) -> None: ...

class Gpu:
    def __init__(self, index: int, *, from_ptx: bool = False) -> None: ...
    def run(
        self,
        events: Iterable[Event],
        *,
        warp_slots: bool,
        deadline: float,
        settle: float,
        groups: Iterable[Iterable[int]] = (),
        issue_times: Iterable[float] = (),
    ) -> tuple[list[Measured], list[list[int]], list[bool]]: ...
    def batch(self, *, warp_slots: bool, settle: float) -> Batch: ...
    def time_spent(self) -> dict[str, float]: ...
    def interruptions(self) -> int: ...
    def info(self) -> Info: ...
    def warnings(self) -> list[str]: ...
    def mps(self) -> bool: ...
    def resident(self, launch: Launch) -> int: ...
    def kernel_size(self, launch: Launch) -> tuple[int, int]: ...
    def close(self) -> bool: ...

def run_together(
    gpus: Iterable[Gpu],
    events: Iterable[Iterable[Event]],
    groups: Iterable[Iterable[Iterable[int]]],
    *,
    deadline: float,
    settle: float,
) -> list[tuple[list[Measured], list[list[int]], list[bool]]]: ...
def gpus() -> int: ...
def query(index: int) -> Queried: ...
def patch(image: bytes, registers: int, local_memory: int) -> bytes: ...
def usage(image: bytes) -> list[tuple[str, int, int, int, int]]: ...
def images() -> dict[str, bytes]: ...
