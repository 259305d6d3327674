"""Measures what an SM does with instructions: loops of each opcode, with few warps and many."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
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
# More than one: the first fills the instruction caches. Odd, so that what undoes itself shows. Few,
# so that what settles down has not yet.
_SWEEP_ITERATIONS = 3
_SWEEP = (1, 2, 4, 8, 16, 24, 32, SAFE_LATENCY)  # stalls; then all between right and wrong
_DISTANCES = (1, 2, 3, 4, 6, 8, 12, 16)
_OFTEN = (1, 2, 4, 8, 16, 32, 64)  # numbers of warps on one SM whose runs are repeated
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
        repeats: of the runs with 1, 2, 4 and so on to 64 warps; others are made once.
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
        series = Series(bench, file, repeats, time.monotonic() + seconds, advance)
        reasons = _measure(series, _Maker(workshop), rows, sizes)
    return characterization(bench.spec, bench.about(), series.runs.values(), reasons)


class _TimeOver(Exception):
    """The seconds are spent."""


class Series:
    """Runs of loops, new or from a file.

    Args:
        bench: makes them.
        file: keeps them; None: nobody.
        repeats: of those that are repeated.
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
        until: float,
        advance: Callable[[], object],
    ) -> None:
        earlier_runs = () if file is None else file.runs
        self.runs: dict[Key, Run] = {run.key: run for run in earlier_runs}
        self._bench, self._file, self._repeats = bench, file, repeats
        self._until, self._advance = until, advance
        self._launches: dict[tuple[Scope, int], Placed | None] = {}

    def sweep(self, loops: Iterable[Loop]) -> list[Run]:
        """Returns runs of loops with one warp and a few updates, for their results alone."""
        (alone,) = self._placed(Scope.ONE_SM, [1])
        return [
            self._run(loop, alone, repeat, _SWEEP_ITERATIONS)
            for repeat in range(self._repeats)
            for loop in loops
        ]

    def time(self, loop: Loop, scope: Scope, sizes: Iterable[int], once: bool = False) -> None:
        """Times the loop with each number of warps, without those that cannot be placed."""
        launches = self._placed(scope, sizes)
        for repeat in range(1 if once else self._repeats):
            for launch in launches:
                self._run(loop, launch, repeat, self._bench.iterations)

    def _placed(self, scope: Scope, sizes: Iterable[int]) -> list[Placed]:
        """Returns launches with these numbers of warps, without those that cannot be placed."""
        wanted = [(scope, size) for size in sizes]
        for scope_and_size in wanted:
            if scope_and_size not in self._launches:
                self._launches[scope_and_size] = placed(self._bench.spec, *scope_and_size)
        return [
            launch
            for scope_and_size in wanted
            if (launch := self._launches[scope_and_size]) is not None
        ]

    def _run(self, loop: Loop, launch: Placed, repeat: int, iterations: int) -> Run:
        """Runs a loop, unless it has run already; raises _TimeOver after the time limit."""
        key = Key(
            loop.opcode, loop.mode, loop.distance, loop.spacing, loop.updates,
            launch.scope, launch.warps, repeat,
        )  # fmt: skip
        if key in self.runs:
            return self.runs[key]
        if time.monotonic() > self._until:
            raise _TimeOver
        records = self._bench.run(loop, launch, iterations)
        run = Run.of(loop, launch, repeat, iterations, records)
        if self._file is not None:
            self._file.append(run)
        self.runs[key] = run
        self._advance()
        return run


class _Maker:
    """Makes loops of many opcodes at the same time: most of that is waiting for other programs.

    Args:
        workshop: where they are made.

    Attributes:
        reasons: why there are none of an opcode, by name.
    """

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self.reasons: dict[str, str] = {}

    def loops(self, wanted: Mapping[Opcode, list[Wanted]]) -> dict[Opcode, list[Loop]]:
        """Returns the loops of each opcode for which all wanted ones could be made."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            loops_by_row = list(pool.map(self._loops_of, wanted, wanted.values()))
        return {row: loops for row, loops in zip(wanted, loops_by_row, strict=True) if loops}

    def _loops_of(self, row: Opcode, wanted: list[Wanted]) -> list[Loop]:
        """Returns the loops of an opcode; [] with a noted reason if none can be made."""
        try:
            return self.workshop.loops(row, wanted) if wanted else []
        except ValueError as error:
            self.reasons[row.name] = str(error)
            return []


def _measure(
    series: Series, maker: _Maker, rows: list[Opcode], sizes: tuple[int, ...]
) -> dict[str, str]:
    """Runs all loops of all opcodes. Returns, by name of an opcode, why not all of its loops ran;
    empty: all did."""
    maker.reasons |= {row.name: maker.workshop.reason(row) for row in rows}
    able = [row for row in rows if not maker.reasons[row.name]]
    reasons = {row.name: "the time was over" for row in able}
    try:
        latencies = _latencies(series, maker, able)
        loops_by_row = maker.loops(
            {row: _timed(maker.workshop, row, latencies[row]) for row in able}
        )
        for loops in loops_by_row.values():
            for loop in loops:
                series.time(loop, Scope.ONE_SM, [size for size in _OFTEN if size in sizes])
            series.time(loops[-1], Scope.ALL_SMS, _EVERYWHERE)  # the fastest alone
        for row, loops in loops_by_row.items():
            for loop in loops:
                series.time(loop, Scope.ONE_SM, sizes, once=True)
            del reasons[row.name]
    except _TimeOver:
        return reasons | {name: reason for name, reason in maker.reasons.items() if reason}
    return maker.reasons


def _latencies(series: Series, maker: _Maker, rows: list[Opcode]) -> dict[Opcode, int | None]:
    """Returns, by opcode, after how many clocks its result is right; None: not known. 1 for those
    whose result a scoreboard tells.

    A few stalls are tried first, then those between the last wrong one and the first right one.
    """
    encoded = [row for row in rows if row.executes and not maker.workshop.waits(row)]
    runs: dict[Opcode, list[Run]] = {row: [] for row in encoded if row.tells}
    stalls: dict[Opcode, Iterable[int]] = dict.fromkeys(runs, _SWEEP)
    for _ in range(2):
        wanted = {row: _swept(row, row_stalls) for row, row_stalls in stalls.items()}
        for row, loops in maker.loops(wanted).items():
            runs[row] += series.sweep(loops)
        stalls = {row: _stalls_below(least_stall(row_runs)) for row, row_runs in runs.items()}
    unknown: dict[Opcode, int | None] = dict.fromkeys(rows, 1)
    return (
        unknown
        | dict.fromkeys(encoded)
        | {row: least_stall(row_runs) for row, row_runs in runs.items()}
    )


def _swept(row: Opcode, stalls: Iterable[int]) -> list[Wanted]:
    """Returns which loops of an opcode are to be run: for each of these stalls, with each number of
    updates."""
    return [
        Wanted(row.name, Mode.WRITE_READ, 1, stall, updates)
        for stall in stalls
        for updates in _UPDATES
    ]


def _stalls_below(right_stall: int | None) -> Iterable[int]:
    """Returns the stalls between the last wrong one of the sweep and ``right_stall``, the first
    right one; none if that is None."""
    if right_stall is None:
        return ()
    return range(max(stall for stall in _SWEEP if stall < right_stall) + 1, right_stall)


def _timed(workshop: Workshop, row: Opcode, latency: int | None) -> list[Wanted]:
    """Returns which loops of an opcode are to be timed, the fastest last. ``latency``: clocks after
    which a result is right."""
    wanted = []
    for mode in Mode:
        known = workshop.distances(row, mode)
        distances = [d for d in _DISTANCES if d in known]
        if mode is Mode.READ_READ:
            distances = distances[:: max(1, len(distances) - 1)]
        elif latency is None:
            continue
        needs = (latency or 1) if mode is Mode.WRITE_READ else 1
        # A scoreboard's mark is seen two clocks after it was set.
        min_stall = 2 if workshop.waits(row) and mode is Mode.WRITE_READ else 1
        for distance in distances:
            spacing = max(-(-needs // distance), -(-min_stall // distance))
            wanted.append(Wanted(row.name, mode, distance, spacing))
    return wanted


@dataclass(slots=True)
class _Bar:
    """Advances with the time that is spent."""

    start: float
    show: Callable[[int], object]

    def __call__(self) -> None:
        self.show(int(1000 * (time.monotonic() - self.start)))


@contextmanager
def _advancing(seconds: float) -> Generator[Callable[[], object], None, None]:
    """Shows a progress bar of ``seconds``. Yields a function that moves it to the seconds that have
    passed."""
    if not seconds:
        yield lambda: None
        return
    with bar("measuring", max(int(1000 * seconds), 1)) as show:
        yield _Bar(time.monotonic(), show)
