"""What a debugger sees: kernels on the GPU, where their threads are, the host's calls."""

from __future__ import annotations

import math
from dataclasses import dataclass

Extent = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class BlockRange:
    """Consecutive blocks that run: the first, the last, how many, and their SM.

    ``sm`` is None if the debugger did not say it.
    """

    first: Extent
    last: Extent
    count: int
    sm: int | None = None


@dataclass(frozen=True, slots=True)
class PcThreads:
    """Threads of a kernel that are at the same instruction (program counter).

    ``block`` and ``thread`` are one of them; ``line`` is of the source, if the kernel has lines.
    """

    pc: int
    threads: int
    block: Extent
    thread: Extent
    line: str = ""


@dataclass(frozen=True, slots=True)
class ResidentKernel:
    """A kernel that has blocks on the GPU.

    Attributes:
        number: the debugger's number of it, for this look alone.
        grid_id: CUDA's number of the grid, the same in each look.
        gpu: the GPU.
        sms: numbers of the SMs that hold blocks of it, ascending.
        grid, block: dimensions.
        name: as the debugger prints it, without arguments.
        blocks: those that run.
        pc_threads: where its threads are.
    """

    number: int
    grid_id: int
    gpu: int
    sms: tuple[int, ...]
    grid: Extent
    block: Extent
    name: str
    blocks: tuple[BlockRange, ...] = ()
    pc_threads: tuple[PcThreads, ...] = ()

    @property
    def size(self) -> int:
        """Number of blocks of the grid."""
        return math.prod(self.grid)

    @property
    def running(self) -> int:
        """Number of blocks that run."""
        return sum(block.count for block in self.blocks)

    @property
    def started(self) -> int:
        """Number of blocks that have started: blocks start in the order of their numbers."""
        return max((self.linear(block.last) + 1 for block in self.blocks), default=0)

    @property
    def missing(self) -> int:
        """Number of blocks that have not started."""
        return self.size - self.started

    def linear(self, index: Extent) -> int:
        """Returns the number of a block, from 0, given its three indices."""
        x, y, z = index
        return x + self.grid[0] * (y + self.grid[1] * z)


@dataclass(frozen=True, slots=True)
class Sample:
    """One thread of a kernel: its instruction, those around it, and its registers.

    Attributes:
        grid_id: of the kernel.
        block, thread: which thread.
        pc: the address of its instruction.
        symbol: the kernel and the offset in it, such as ``wait_flag+208``.
        instructions: address and text of those around it; empty if the debugger has none.
        registers: values by name.
    """

    grid_id: int
    block: Extent
    thread: Extent
    pc: int
    symbol: str
    instructions: tuple[tuple[int, str], ...]
    registers: dict[str, int]


@dataclass(frozen=True, slots=True)
class HostThread:
    """A thread of the host.

    Attributes:
        system_thread: the number that the operating system gives it.
        name: of the thread.
        functions: those with names that it is in, the innermost first.
        is_in_driver: whether no function outside the driver is known: it is in a call of CUDA.
        host_function: the host function that this thread of the driver runs; empty: none.
    """

    system_thread: int
    name: str
    functions: tuple[str, ...]
    is_in_driver: bool = False
    host_function: str = ""

    @property
    def cuda_call(self) -> str | None:
        """The driver's function that it is in, such as ``cuMemFree_v2``; None: in none."""
        for function in self.functions:
            if function.startswith("cu") and not function.startswith("cuda"):
                return function
        return None


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as the debugger names it."""

    number: int
    name: str
    sms: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a debugger saw at one time.

    Attributes:
        source: what it looked at, in words.
        gpus: the GPUs of the process.
        kernels: those with blocks on a GPU.
        samples: single threads of them.
        threads: of the host; empty of a core dump of the GPU.
        seconds: how long it took.
        notes: sentences: what it could not see.
    """

    source: str
    gpus: tuple[Gpu, ...]
    kernels: tuple[ResidentKernel, ...]
    samples: tuple[Sample, ...] = ()
    threads: tuple[HostThread, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
