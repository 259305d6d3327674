"""Block sizes for a kernel, and why each other one is to be avoided.

There are three conditions: an even spread that is guaranteed, a single wave, and as many warps for
each processing block of an SM. They are what is about placement in the six by which a thesis on
GF100 GPUs selects launch configurations, for any device and over all resources.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tbsched.advice.evenness import Evenness, forced_even
from tbsched.advice.reasons.case import WARP, Case
from tbsched.advice.reasons.estimate import estimate
from tbsched.advice.reasons.rules import RULES, Reason
from tbsched.counting import counted
from tbsched.errors import shown
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.checks import flag, integer
from tbsched.program.sequence import MAX_BLOCKS, Launch, Sequence
from tbsched.shown import Shown
from tbsched.sm.characterization.results import Characterization
from tbsched.sm.code import Code, measured, read_code

# Blocks on each SM that are tried where any grid works, besides as many as fit.
_INDISTINGUISHABLE = 1.1  # times an estimate: what it cannot tell apart
_USUAL_THREADS = 256  # threads of a block
_BLOCKS_PER_SM_TRIED = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


@dataclass(frozen=True, slots=True)
class Kernel:
    """Work that blocks of any size can share: a thread for each item.

    Attributes:
        threads: items in all, with a thread for each.
        registers: registers per thread, as the driver reports them.
        shared_memory: bytes per block, for blocks of any size.
        shared_memory_per_thread: bytes per thread of the block, in addition.
        local_memory: bytes per thread.
        carveout: as in :class:`tbsched.Launch`.
        loops: whether threads loop over the items, so that any number of blocks works.
        blocks: of the grid, whatever their size, where the threads of a block loop over its part
            of the items; None: it follows from the items.

    Raises:
        TypeError, ValueError: a field out of its range; names the field, the value and the limit.

    Example:
        >>> tb.Kernel(threads=1_000_000, registers=40, shared_memory_per_thread=8).registers
        40
    """

    threads: int
    registers: int
    shared_memory: int = 0
    shared_memory_per_thread: int = 0
    local_memory: int = 0
    carveout: int | None = None
    loops: bool = False
    blocks: int | None = None

    def __post_init__(self) -> None:
        for name, low, high in (
            ("threads", 1, MAX_BLOCKS),
            ("shared_memory", 0, 2**24),
            ("shared_memory_per_thread", 0, 2**13),
        ):
            integer("Kernel", name, getattr(self, name), low, high)
        flag("Kernel", "loops", self.loops)
        if self.blocks is not None:
            integer("Kernel", "blocks", self.blocks, 1, MAX_BLOCKS)
            if self.loops:
                raise ValueError(
                    "Kernel.blocks: threads that loop work with any grid; leave it out"
                )
        Launch(1, 1, self.registers, local_memory=self.local_memory, carveout=self.carveout)

    def launch(self, threads: int, blocks: int | None = None) -> Launch:
        """Returns the launch with so many threads per block; threads of the last block may be idle.

        Args:
            threads: per block, 1 to 1024.
            blocks: of the grid; None: as the kernel says.

        Raises:
            TypeError, ValueError: names the field, the value and the limit.

        Example:
            >>> tb.Kernel(threads=1_000_000, registers=40).launch(threads=256)
            Launch(blocks=3907, threads=256, registers=40)
        """
        integer("Kernel.launch", "threads", threads, 1, 1024)
        if blocks is None:
            blocks = -(-self.threads // threads) if self.blocks is None else self.blocks
        return Launch(
            blocks=blocks, threads=threads, registers=self.registers,
            shared_memory=self.shared_memory + self.shared_memory_per_thread * threads,
            local_memory=self.local_memory, carveout=self.carveout,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """One block size.

    Attributes:
        launch: the kernel with this block size.
        evenness: see :func:`tbsched.forced_even`; None where the launch cannot run.
        rejected: what speaks against this block size, in words; empty where nothing does.
        reasons: what the machine code says for and against it.
        estimate: clocks, for comparison with other rows; None: the machine code was not given.

    Example:
        >>> row = tb.launch_configs("h200", tb.Kernel(threads=202752, registers=40)).rows[0]
        >>> row.launch.threads, row.accepted
        (32, False)
    """

    launch: Launch
    evenness: Evenness | None
    rejected: tuple[str, ...]
    reasons: tuple[Reason, ...] = ()
    estimate: float | None = None

    @property
    def accepted(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.rejected


@dataclass(frozen=True, slots=True, repr=False)
class LaunchConfigs(Shown):
    """All block sizes of whole warps for a kernel on a device; prints as a table.

    Attributes:
        device: the device's name.
        kernel: the work.
        rows: one :class:`LaunchConfig` per block size, ascending; several where any grid works.
        code: what the machine code asks of an SM; None: it was not given.

    Example:
        >>> configs = tb.launch_configs("h200", tb.Kernel(threads=202752, registers=40))
        >>> len(configs), [row.launch.threads for row in configs.accepted]
        (32, [64, 96, 128, 192, 256, 384, 512, 768])
    """

    device: str
    kernel: Kernel
    rows: tuple[LaunchConfig, ...]
    code: Code | None = None

    def __iter__(self) -> Iterator[LaunchConfig]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def accepted(self) -> tuple[LaunchConfig, ...]:
        """The block sizes that nothing speaks against."""
        return tuple(row for row in self.rows if row.accepted)

    @property
    def advised(self) -> LaunchConfig | None:
        """Returns the row with the least estimate; None without machine code or possible rows.

        Of rows that differ by less than the estimate can tell it is the one next to 256 threads.
        """
        known = [(row.estimate, row) for row in self.rows if row.estimate is not None]
        least = min((clocks for clocks, _ in known), default=None)
        if least is None:
            return None
        near = [row for clocks, row in known if clocks <= _INDISTINGUISHABLE * least]
        return min(
            near, key=lambda row: (abs(np.log2(row.launch.threads / _USUAL_THREADS)), row.estimate)
        )


def launch_configs(
    device: str | os.PathLike[str] | DeviceSpec,
    kernel: Kernel,
    trust_policy: bool = False,
    *,
    code: Any = None,
    tables: Characterization | None = None,
) -> LaunchConfigs:
    """Returns which block sizes use an idle GPU evenly, with advice from machine code.

    A block size is accepted on three conditions: the blocks are certain to spread evenly over the
    SMs (:func:`forced_even`), they fit in one wave, and each processing block of an SM gets the
    same number of warps.

    Args:
        device: a name, the path of a ``.toml`` file, or a spec.
        kernel: the work, and what each thread and block need.
        trust_policy: also accept a spread that is even under the device's own policy, although the
            resources alone do not make it certain.
        code: the kernel's machine code, which adds reasons and an estimate to each row, and advises
            one: the path of a cubin, or (path, name); a cubin as bytes, or (bytes, name); a
            ``RawKernel`` of CuPy; Triton's compiled kernel; a function of Numba's ``@cuda.jit``;
            (ObjectCode, name) of cuda.core; or a :class:`tbsched.sm.Mix` of instructions.
        tables: how long instructions take; None: those that tbsched ships for the device.

    Raises:
        TypeError, ValueError: not a :class:`Kernel`, a field of it that no launch allows, or no
            code that can be read.
        ToolMissing: nvdisasm is needed to read the code, and is not there.

    Example:
        >>> tb.launch_configs("h200", tb.Kernel(threads=202752, registers=40))
        <LaunchConfigs: h200: 8 of 32 block sizes are accepted>
        >>> mix = tb.sm.Mix({"fp32.fma": 400, "memory": 3})
        >>> kernel = tb.Kernel(threads=202752, registers=40)
        >>> tb.launch_configs("h200", kernel, code=mix).advised.launch.threads
        256
    """
    spec = _spec(device)
    flag("launch_configs", "trust_policy", trust_policy)
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel: a Kernel is needed, got {shown(kernel)}")
    rows = [_judge(spec, launch, trust_policy) for launch in _launches(spec, kernel)]
    if code is None:
        return LaunchConfigs(spec.name, kernel, tuple(rows))
    known = measured(spec) if tables is None else tables
    read = read_code(code, known, spec.processing_blocks)
    reasoned = tuple(_reasoned(spec, row, kernel, read, known) for row in rows)
    return LaunchConfigs(spec.name, kernel, reasoned, read)


_spec = device  # launch_configs() has a parameter of that name


def _launches(spec: DeviceSpec, kernel: Kernel) -> Iterator[Launch]:
    """Yields a launch for each block size of whole warps, and for each grid to loop in."""
    for threads in range(WARP, spec.threads_per_block + 1, WARP):
        launch = kernel.launch(threads)
        if not kernel.loops:
            yield launch
            continue
        try:
            fitting = forced_even(spec, dataclasses.replace(launch, blocks=1)).blocks_per_sm
        except ValueError:  # the row of this launch names the reason
            yield launch
            continue
        for per_sm in [*(per_sm for per_sm in _BLOCKS_PER_SM_TRIED if per_sm < fitting), fitting]:
            if per_sm * spec.sms <= launch.blocks:
                yield kernel.launch(threads, per_sm * spec.sms)
        yield launch


def _reasoned(
    spec: DeviceSpec, row: LaunchConfig, kernel: Kernel, code: Code, tables: Characterization
) -> LaunchConfig:
    """Returns the row of a launch with reasons and estimate from its machine code."""
    if row.evenness is None:
        return row
    loops_over_items = kernel.loops or (
        kernel.blocks is not None and kernel.threads > kernel.blocks
    )
    case = Case(
        spec, row.launch, row.evenness, code, tables, kernel.threads if loops_over_items else 0
    )
    return dataclasses.replace(
        row, reasons=tuple(rule(case) for rule in RULES), estimate=estimate(case)
    )


def _judge(spec: DeviceSpec, launch: Launch, trust_policy: bool) -> LaunchConfig:
    """Returns the row of a launch: whether it is accepted, and how evenly it spreads."""
    try:
        spec.check(Sequence([launch]))
    except ValueError as error:
        return LaunchConfig(launch, None, (str(error).removeprefix("launch 0: "),))
    evenness = forced_even(spec, launch)
    if launch.blocks > evenness.blocks_per_sm * spec.sms:
        return LaunchConfig(launch, evenness, (evenness.reason,))
    rejected = []
    is_even = evenness.forced
    if trust_policy and not is_even:
        is_even = int(np.ptp(predict(Sequence([launch]), spec)[0].occupancy(spec.sms))) <= 1
    if not is_even:
        rejected.append(evenness.reason)
    uneven = _warps_left_over(spec, launch, evenness)
    if uneven is not None:
        rejected.append(uneven)
    return LaunchConfig(launch, evenness, tuple(rejected))


def _warps_left_over(spec: DeviceSpec, launch: Launch, evenness: Evenness) -> str | None:
    """Returns why processing blocks of an SM get different numbers of warps; None: they do not."""
    for blocks in evenness.share:
        warps = blocks * -(-launch.threads // WARP)
        if warps % spec.processing_blocks:
            return f"{counted(warps, 'warp')} on an SM, not a multiple of {spec.processing_blocks}"
    return None
