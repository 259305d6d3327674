"""Measures what an SM does with instructions: loops of each opcode, with few warps and many."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tbsched.program import checks
from tbsched.progress import bar
from tbsched.sm.characterization.bench import Bench, Workshop
from tbsched.sm.characterization.figures import least_stall
from tbsched.sm.characterization.gpu import GpuBench
from tbsched.sm.characterization.loops import SAFE_LATENCY, Loop, Mode, Wanted
from tbsched.sm.characterization.opcodes import OPCODES, Opcode, opcode
from tbsched.sm.characterization.placing import Placed, Scope, placed
from tbsched.sm.characterization.results import Characterization, characterization
from tbsched.sm.characterization.runs import Key, Run, RunFile

REPEATS = 3
_UPDATES = (2, 3)  # in which a chain that is read too early shows
_SWEEP_ITERATIONS = 5  # odd, and more than one: the first fills the instruction caches
_DISTANCES = (1, 2, 3, 4, 6, 8, 12, 16)
_EVERYWHERE = (1, 8, 32, 64)  # warps per SM


def characterize(
    gpu: int | Bench = 0,
    opcodes: Iterable[str] | None = None,
    seconds: float = 300.0,
    *,
    raw: str | os.PathLike[str] | None = None,
    warps: Iterable[int] | None = None,
    repeats: int = REPEATS,
    progress: bool = True,
) -> Characterization:
    """Measures throughput, waits, warps needed and skew of instructions.

    Every loop is proved in the machine code before it runs. An opcode of which there is no such
    loop is reported with the reason, and not measured.

    Args:
        gpu: number of the GPU, or a bench in its place.
        opcodes: names of :data:`~tbsched.sm.OPCODES`; None: all.
        seconds: for how long. Opcodes that come too late have no figures.
        raw: a ``.jsonl`` file that keeps every run. What it already holds is not run again.
        warps: the numbers of warps on one SM; None: 1 to all that an SM holds.
        repeats: of each run.
        progress: shows a bar on standard error.

    Returns:
        A :class:`~tbsched.sm.Characterization`.

    Raises:
        ImportError: cuda.core is missing.
        NoGpuError: no usable GPU.
        ToolMissing: ptxas or nvdisasm is not there; says how to get it.
        TypeError, ValueError: an unknown opcode, or a file of something else.

    Example:
        >>> sorted({row.family for row in tb.sm.OPCODES.values()})[:4]
        ['FP32', 'FP64', 'INT32', 'bfloat16']
        >>> tb.sm.characterize(opcodes=["fp32.fma"], raw="h200.jsonl")  # doctest: +SKIP
        <Characterization: NVIDIA H200, 1 opcode, 5,124 runs>
    """
    rows = [opcode(name) for name in opcodes] if opcodes is not None else list(OPCODES.values())
    if repeats < 1:
        raise ValueError(f"repeats: {repeats} is less than 1")
    seconds = checks.seconds("characterize", "seconds", seconds)
    bench = GpuBench(gpu) if isinstance(gpu, int) else gpu
    with ExitStack() as stack:
        file = None if raw is None else RunFile(raw, bench.about())
        if file is not None:
            stack.callback(file.close)
        workshop = bench.workshop(rows)
        sizes = tuple(warps) if warps is not None else tuple(range(1, bench.spec.warps_per_sm + 1))
        advance = stack.enter_context(_advancing(seconds if progress else 0))
        series = Series(bench, file, repeats, sizes, time.monotonic() + seconds, advance)
        reasons = {row.name: _measured(series, workshop, row) for row in rows}
    return characterization(bench.spec, bench.about(), series.runs.values(), reasons)


class _TimeOver(Exception):
    """The seconds are spent."""


class Series:
    """Runs that are made, or were already.

    Args:
        bench: makes them.
        file: keeps them; None: nobody.
        repeats: of each.
        sizes: the numbers of warps on one SM.
        until: by the monotonic clock.
        advance: is told how many there are.

    Attributes:
        runs: by key.
    """

    def __init__(
        self,
        bench: Bench,
        file: RunFile | None,
        repeats: int,
        sizes: tuple[int, ...],
        until: float,
        advance: Callable[[], object],
    ) -> None:
        held = () if file is None else file.runs
        self.runs: dict[Key, Run] = {run.key: run for run in held}
        self._bench, self._file, self._repeats = bench, file, repeats
        self._until, self._advance = until, advance
        self._alone = [placed(bench.spec, Scope.ONE_SM, size) for size in sizes]
        self._everywhere = [placed(bench.spec, Scope.ALL_SMS, size) for size in _EVERYWHERE]

    def sweep(self, loops: Iterable[Loop]) -> list[Run]:
        """One warp, a few updates, for the results alone."""
        alone = placed(self._bench.spec, Scope.ONE_SM, 1)
        return [
            self._run(loop, alone, repeat, _SWEEP_ITERATIONS)
            for repeat in range(self._repeats)
            for loop in loops
            if alone is not None
        ]

    def time(self, loops: list[Loop]) -> None:
        """Every loop with every number of warps; on all SMs the last loop alone."""
        for repeat in range(self._repeats):
            for loop in loops:
                everywhere = self._everywhere if loop is loops[-1] else []
                for launch in filter(None, [*self._alone, *everywhere]):
                    self._run(loop, launch, repeat, self._bench.iterations)

    def _run(self, loop: Loop, launch: Placed, repeat: int, iterations: int) -> Run:
        key = Key(
            loop.opcode, loop.mode, loop.distance, loop.spacing, loop.updates,
            launch.scope, launch.warps, repeat,
        )  # fmt: skip
        if key not in self.runs:
            if time.monotonic() > self._until:
                raise _TimeOver
            records = self._bench.run(loop, launch, iterations)
            run = Run.of(loop, launch, repeat, iterations, records)
            if self._file is not None:
                self._file.append(run)
            self.runs[key] = run
            self._advance()
        return self.runs[key]


def _measured(series: Series, workshop: Workshop, row: Opcode) -> str:
    """Runs what there is to run; returns why not all of it was, if so."""
    reason = workshop.reason(row)
    if reason:
        return reason
    try:
        latency = _latency(series, workshop, row)
        series.time(workshop.loops(row, _timed(workshop, row, latency)))
    except _TimeOver:
        return "the time was over"
    return ""


def _latency(series: Series, workshop: Workshop, row: Opcode) -> int:
    """Clocks after which a result is right, for those whose code has to say so."""
    if workshop.waits(row) or not row.executes:
        return 1
    wanted = [
        Wanted(row.name, Mode.WRITE_READ, 1, spacing, updates)
        for spacing in range(1, SAFE_LATENCY + 1)
        for updates in _UPDATES
    ]
    return least_stall(series.sweep(workshop.loops(row, wanted))) or SAFE_LATENCY


def _timed(workshop: Workshop, row: Opcode, latency: int) -> list[Wanted]:
    """The loops whose time is taken, the fastest last."""
    found = []
    for mode in Mode:
        known = workshop.distances(row, mode)
        distances = [d for d in _DISTANCES if d in known]
        if mode is Mode.READ_READ:
            distances = distances[:: max(1, len(distances) - 1)]
        needs = latency if mode is Mode.WRITE_READ else 1
        # A scoreboard's mark is seen two clocks after it was set.
        least = 2 if workshop.waits(row) and mode is Mode.WRITE_READ else 1
        for distance in distances:
            spacing = max(-(-needs // distance), -(-least // distance))
            found.append(Wanted(row.name, mode, distance, spacing))
    return found


@dataclass(slots=True)
class _Bar:
    """Advances with the time that is spent."""

    start: float
    show: Callable[[int], object]

    def __call__(self) -> None:
        self.show(int(1000 * (time.monotonic() - self.start)))


@contextmanager
def _advancing(seconds: float) -> Generator[Callable[[], object], None, None]:
    if not seconds:
        yield lambda: None
        return
    with bar("measuring", max(int(1000 * seconds), 1)) as show:
        yield _Bar(time.monotonic(), show)
