"""What a kernel asks of an SM: from its machine code, or from a mix of instructions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tbsched.errors import did_you_mean, shown
from tbsched.program.checks import instance, integer
from tbsched.sm.characterization.figures import LANES, Figures
from tbsched.sm.characterization.opcodes import OPCODES
from tbsched.sm.characterization.results import Characterization
from tbsched.sm.characterization.toolkit import Instruction
from tbsched.sm.code.classes import CLASSES, Class, Unit
from tbsched.sm.code.reading import cubin_of, instructions_of, naming
from tbsched.sm.code.walking import TURNS, Walk, walk

MEMORY_LATENCY = 600.0  # clocks, of an access that leaves the SM; of DRAM on Hopper, about
_UNKNOWN_LATENCY = 20.0  # assumed for units that were not measured
_FEW, _MANY = TURNS // 2, 3 * TURNS // 2  # turns, to tell what is in loops
_UNROLLED = 2.0  # items in a turn of a loop: compilers unroll
_MAX_INSTRUCTIONS = 10**9  # instructions of a mix
_ISSUE = 1.0  # clocks of a processing block for any instruction


@dataclass(frozen=True, slots=True)
class Mix:
    """Instructions of a kernel, by hand, where its machine code is not there.

    Attributes:
        counts: how many of each opcode a thread executes, for each item if it loops: names of
            :data:`tbsched.sm.OPCODES`, ``memory`` and ``barrier``.
        distances: by opcode, the fewest instructions from one to the next that reads its result;
            1 where none is given.

    Raises:
        TypeError, ValueError: an unknown opcode, no instruction at all, or a number out of its
            range.

    Example:
        >>> mix = tb.sm.Mix({"fp32.fma": 400, "memory": 3}, distances={"fp32.fma": 4})
        >>> mix.counts["memory"]
        3
    """

    counts: Mapping[str, int]
    distances: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        known = (*OPCODES, *_OTHERS)
        for field, values, min_value in (
            ("counts", self.counts, 0),
            ("distances", self.distances, 1),
        ):
            if field == "distances" and values is None:
                continue
            if not isinstance(values, Mapping):
                raise TypeError(f"Mix.{field}: numbers by opcode are needed, got {shown(values)}")
            for name, value in values.items():
                if name not in known:
                    raise ValueError(
                        f"Mix.{field}: {name!r} is not known{did_you_mean(name, known)}"
                    )
                integer(f"Mix.{field}", name, value, min_value, _MAX_INSTRUCTIONS)
        if not any(self.counts.values()):
            raise ValueError("Mix.counts: at least one instruction is needed")


_OTHERS = {"memory": Unit.MEMORY, "barrier": Unit.BARRIER}


@dataclass(frozen=True, slots=True)
class Code:
    """What one warp of a kernel asks of an SM, as its machine code says.

    What the kernel really used is a :class:`tbsched.sm.KernelProfile`, which is measured.
    Loops turn as often as ``tbsched.sm.code.walking`` says, so only ratios mean something.

    Attributes:
        clocks: one warp alone takes.
        waited: of them, for memory alone.
        busy: clocks that it keeps the busiest unit of its processing block.
        busiest: that unit.
        instructions: that it executes.
        memory: of them, accesses of memory.
        barriers: of them, barriers of the block.
        bytes: of memory that a thread touches.
        distances: by opcode, the fewest instructions to the next that reads its result.
        uses: for each read of memory, how many instructions follow until its result is needed.
        transfers: instructions between two accesses of memory.
        once: of ``clocks`` and of ``busy``, what is outside of loops.
        turn: the same of one turn of all loops.
        items_a_turn: items that a thread handles in a turn, where threads loop over items.
        widest: bytes that a thread touches in one access of memory at most; 0: not known, as of
            a bulk copy.

    Example:
        >>> found = tb.sm.read_code(tb.sm.Mix({"fp64.fma": 100}), tb.sm.measured("h200"), 4)
        >>> found.busiest, round(found.warps_alone)
        ('FP64', 4)
    """

    clocks: float
    waited: float
    busy: float
    busiest: str
    instructions: int
    memory: int
    barriers: int
    bytes: int
    distances: Mapping[str, int]
    uses: tuple[int, ...]
    transfers: tuple[int, ...]
    once: tuple[float, float]
    turn: tuple[float, float]
    items_a_turn: float
    widest: int = 0

    def with_turns(self, turns: float) -> tuple[float, float]:
        """Returns the clocks that a warp alone takes, and those for which it keeps the busiest unit
        busy, if each loop is executed ``turns`` times.

        Example:
            >>> mix = tb.sm.Mix({"fp64.fma": 100})
            >>> found = tb.sm.read_code(mix, tb.sm.measured("h200"), 4)
            >>> [round(clocks) for clocks in found.with_turns(8)]
            [804, 200]
        """
        clocks, busy = (
            outside_loops + turns * turn
            for outside_loops, turn in zip(self.once, self.turn, strict=True)
        )
        return clocks, busy

    @property
    def warps_alone(self) -> float:
        """Returns how many warps keep the busiest unit of a processing block always busy.

        Waits for memory do not count.
        """
        return (self.clocks - self.waited) / self.busy

    @property
    def warps_with_memory(self) -> float:
        """Warps that a processing block needs if every access leaves the SM."""
        return self.clocks / self.busy


def read_code(kernel: Any, tables: Characterization, processing_blocks: int) -> Code:
    """Returns what a kernel asks of an SM, from its machine code or a mix of instructions.

    Args:
        kernel: a :class:`Mix`; the path of a cubin, or (path, name); a cubin as bytes; a
            ``RawKernel`` of CuPy; the compiled kernel of Triton; a function of Numba's
            ``@cuda.jit``; (ObjectCode, name) of cuda.core.
        tables: how long instructions take on the GPU.
        processing_blocks: of an SM; 4 on Hopper.

    Raises:
        ToolMissing: nvdisasm is needed, and is not there.
        TypeError, ValueError: nothing of these, or a cubin without such a kernel.

    Example:
        >>> tables = tb.sm.measured("h200")
        >>> tb.sm.read_code(("gemm.cubin", "gemm"), tables, 4).busiest  # doctest: +SKIP
        'tensor'
    """
    instance("read_code", "tables", tables, Characterization)
    integer("read_code", "processing_blocks", processing_blocks, 1, 64)
    known = {figures.opcode: figures for figures in tables.figures}
    if isinstance(kernel, Mix):
        return _of_mix(kernel, known, processing_blocks)
    with naming(kernel):
        code = instructions_of(*cubin_of(kernel))
    return _of_code(code, known, processing_blocks)


def _of_code(code: tuple[Instruction, ...], known: Mapping[str, Figures], blocks: int) -> Code:
    """Returns the clocks and unit times of a warp, for one turn of its loops and for all."""

    def with_turns(turns: int) -> Code:
        return _summed(walk(code, lambda kind: _latency(kind, known), turns), known, blocks)

    with_few, usual, with_many = map(with_turns, (_FEW, TURNS, _MANY))
    turn = tuple(
        (after - before) / (_MANY - _FEW)
        for before, after in ((with_few.clocks, with_many.clocks), (with_few.busy, with_many.busy))
    )
    # Loops in loops take more than in proportion: then nothing is outside of them.
    outside_loops = (
        max(with_few.clocks - _FEW * turn[0], 0.0),
        max(with_few.busy - _FEW * turn[1], 0.0),
    )
    return replace(usual, once=outside_loops, turn=(turn[0], turn[1]), items_a_turn=_UNROLLED)


def _summed(path_walk: Walk, known: Mapping[str, Figures], blocks: int) -> Code:
    """Returns the clocks that each unit is busy with the instructions of a walk."""
    busy: dict[str, float] = {"issue": _ISSUE * sum(path_walk.counts.values())}
    for kind, count in path_walk.counts.items():
        unit = str(kind.unit)
        busy[unit] = busy.get(unit, 0.0) + count * _interval(kind, known, blocks)
    busiest = max(busy, key=lambda name: busy[name])
    counts = dict.fromkeys(Unit, 0)
    for kind, count in path_walk.counts.items():
        counts[kind.unit] += count
    return Code(
        path_walk.clocks, path_walk.waited, busy[busiest], busiest, sum(path_walk.counts.values()),
        counts[Unit.MEMORY], counts[Unit.BARRIER], path_walk.bytes, dict(path_walk.distances),
        tuple(path_walk.uses), tuple(path_walk.transfers), (0.0, 0.0),
        (path_walk.clocks / TURNS, busy[busiest] / TURNS), 1 / TURNS,
        0 if path_walk.in_bulk else path_walk.widest,
    )  # fmt: skip


def _of_mix(mix: Mix, known: Mapping[str, Figures], blocks: int) -> Code:
    """Returns what a mix of instructions asks of an SM."""
    distances = dict(mix.distances or {})
    walk_of_mix = Walk(
        distances={name: distances.get(name, 1) for name in mix.counts if name in OPCODES}
    )
    for name, count in mix.counts.items():
        kind = _class_named(name)
        walk_of_mix.counts[kind] = walk_of_mix.counts.get(kind, 0) + count
        wait = _latency(kind, known) / distances.get(name, 1)
        walk_of_mix.clocks += count * max(wait, _interval(kind, known, blocks), _ISSUE)
        if kind.unit is Unit.MEMORY:
            walk_of_mix.waited += count * wait
            walk_of_mix.bytes += 4 * count
            walk_of_mix.widest = 4 if count else walk_of_mix.widest
    return _summed(walk_of_mix, known, blocks)


def _class_named(name: str) -> Class:
    """Returns the class of instructions that a name of a mix stands for."""
    unit = _OTHERS.get(name)
    rows: Iterable[Class] = (
        kind for kind in CLASSES if kind.measured == name or (unit and kind.unit is unit)
    )
    return next(iter(rows), Class(Unit.INTEGER, name, ""))


def _latency(kind: Class, known: Mapping[str, Figures]) -> float:
    """Returns the clocks until the result of an instruction can be used."""
    if kind.unit is Unit.MEMORY:
        return MEMORY_LATENCY
    figures = known.get(kind.measured)
    if figures is None or figures.dependence_wait is None:
        return _UNKNOWN_LATENCY
    return figures.dependence_wait.value


def _interval(kind: Class, known: Mapping[str, Figures], blocks: int) -> float:
    """Returns the clocks for which an instruction of a warp keeps its unit of a processing block
    busy."""
    figures = known.get(kind.measured)
    if figures is None or figures.throughput is None:
        return _ISSUE
    return blocks * LANES / figures.throughput.value
