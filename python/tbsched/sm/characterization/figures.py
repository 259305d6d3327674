"""From recorded runs to quantities: pure functions, also of runs that were recorded long ago."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tbsched.sm.characterization.loops import Mode
from tbsched.sm.characterization.placing import Scope
from tbsched.sm.characterization.runs import Run

LANES = 32
NEAR = 0.95  # share of the best throughput that counts as best
_SAME = 0.01  # throughputs of one warp that differ by less are the same


@dataclass(frozen=True, slots=True)
class Measured:
    """A quantity, and how well repeats agree.

    Attributes:
        value: the mean of the repeats.
        low: the least of them.
        high: the greatest of them.
        runs: how many there were.
    """

    value: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Measured:
        numbers = list(values)
        return cls(float(np.mean(numbers)), min(numbers), max(numbers), len(numbers))

    @property
    def spread(self) -> float:
        """Between the greatest and the least, as a share of the value."""
        return (self.high - self.low) / self.value if self.value else 0.0


class Point(NamedTuple):
    """Key of the repeats of one loop with a number of warps."""

    mode: Mode
    distance: int
    warps: int


@dataclass(frozen=True, slots=True)
class Skew:
    """Clocks between the first and the last warp of an SM, at most.

    Attributes:
        starting: at the loop's beginning.
        ending: at its end.
    """

    starting: int
    ending: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What was found out about an opcode. None: not measured.

    Attributes:
        opcode: its name.
        throughput: results a clock on one SM, with the best loop and number of warps.
        confirmed: whether a second loop comes within 5 % of it.
        all_sms: the best results a clock and SM, with warps on every SM.
        scheduling_wait: clocks from one instruction of a warp to its next, at least.
        dependence_wait: clocks until the next instruction can read the result.
        least_stall: the least stall in the machine code with which the result is right.
        least_warps: by mode and distance, the fewest warps within 5 % of the best throughput.
        ends: by mode, distance and number of warps on one SM, the clocks between the first and the
            last warp at the end of the loop, at most.
        overhead: how many warps more than arithmetic asks for are needed, with the best loop.
        even: skew where each processing block has as many warps.
        uneven: skew where they have not.
        best_even: of the even numbers of warps, the share within 5 % of the best throughput.
        best_uneven: the same of the others.
        unbalanced: of the runs, how many had warps spread less evenly than possible.
        failed: of the runs, how many did not record every warp.
        misplaced: of the runs, how many had a block where the predictor did not say.
        runs: how many there were.
        reason: why nothing was measured.
    """

    opcode: str
    throughput: Measured | None = None
    confirmed: bool = False
    all_sms: Measured | None = None
    scheduling_wait: Measured | None = None
    dependence_wait: Measured | None = None
    least_stall: int | None = None
    least_warps: Mapping[tuple[Mode, int], int] | None = field(default=None, repr=False)
    ends: Mapping[Point, int] | None = field(default=None, repr=False)
    overhead: int | None = None
    even: Skew | None = None
    uneven: Skew | None = None
    best_even: float | None = None
    best_uneven: float | None = None
    unbalanced: int = 0
    failed: int = 0
    misplaced: int = 0
    runs: int = 0
    reason: str = ""


def figures(
    opcode: str, runs: Iterable[Run], processing_blocks: int, sms: int, reason: str = ""
) -> Figures:
    """Returns all quantities of an opcode.

    Args:
        opcode: its name.
        runs: of any opcodes; only those of this one are read.
        processing_blocks: of an SM. Warp slot s belongs to processing block s mod this.
        sms: of the GPU.
        reason: why it could not be measured.
    """
    opcode_runs = [run for run in runs if run.key.opcode == opcode]
    whole_runs = [run for run in opcode_runs if _is_whole(run, sms)]
    timed = [run for run in whole_runs if not run.key.updates]
    local = _points(run for run in timed if run.key.scope is Scope.ONE_SM)
    everywhere = _points(run for run in timed if run.key.scope is Scope.ALL_SMS)
    max_runs = max((result.runs for result in local.values()), default=0)
    often = (result for result in local.values() if result.runs == max_runs)
    best = max(often, key=lambda result: result.value, default=None)
    groups = {is_even: [run for run in timed if _is_even(run, processing_blocks) is is_even]
              for is_even in (True, False)}  # fmt: skip
    return Figures(
        opcode,
        best,
        best is not None and len({point[:2] for point in _near(local, best)}) > 1,
        max(everywhere.values(), key=lambda result: result.value, default=None),
        _scheduling_wait(local),
        _dependence_wait(local),
        least_stall(whole_runs),
        None if best is None else _least_warps(local, best),
        _ends(run for run in timed if run.key.scope is Scope.ONE_SM),
        None if best is None else _overhead(local, best, processing_blocks),
        _skew(groups[True]),
        _skew(groups[False]),
        _best_share(local, best, processing_blocks, is_even=True),
        _best_share(local, best, processing_blocks, is_even=False),
        sum(not _is_balanced(run, processing_blocks) for run in timed),
        len(opcode_runs) - len(whole_runs),
        sum(not run.as_predicted for run in whole_runs),
        len(opcode_runs),
        reason,
    )


def results_per_clock(run: Run) -> float:
    """Returns how many results an SM gives per clock, counting 32 per warp instruction, from the
    start of the first warp to the end of the last one."""
    rates = [
        LANES
        * run.instructions
        * len(warps)
        / (int(warps["end"].max()) - int(warps["start"].min()))
        for warps in _by_sm(run)
    ]
    return float(np.mean(rates))


def least_stall(runs: Iterable[Run]) -> int | None:
    """Returns the least stall, in clocks, from which on every result is the same as with the
    longest.

    Returns:
        None: no sweep, one that does not repeat itself, or one whose results do not tell: the
        shortest stall is no shorter than a clock, and no result is there so early.
    """
    results: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for run in runs:
        if run.key.updates:
            results[run.key.spacing][run.key.updates].update(run.warps["result"].tolist())
    if not results:
        return None
    safest = results[max(results)]
    if any(len(values_seen) != 1 for values_seen in safest.values()):
        return None
    least = None
    for spacing in sorted(results, reverse=True):
        if results[spacing] != safest:
            break
        least = spacing
    return None if least == 1 else least


def _points(runs: Iterable[Run]) -> dict[Point, Measured]:
    """Returns the results per clock at each point: each mode, distance and number of warps."""
    rates = defaultdict(list)
    for run in runs:
        point = Point(run.key.mode, run.key.distance, run.key.warps)
        rates[point].append(results_per_clock(run))
    return {point: Measured.of(values) for point, values in rates.items()}


def _ends(runs: Iterable[Run]) -> dict[Point, int]:
    """Returns, for each point, the greatest number of clocks by which the last warp of a run ends
    after the first one."""
    latest: dict[Point, int] = {}
    for run in runs:
        point = Point(run.key.mode, run.key.distance, run.key.warps)
        latest[point] = max(latest.get(point, 0), int(np.ptp(run.warps["end"])))
    return latest


def _near(points: Mapping[Point, Measured], best: Measured) -> list[Point]:
    return [point for point, result in points.items() if result.value >= NEAR * best.value]


def _waits(points: Mapping[Point, Measured]) -> dict[Point, Measured]:
    """Returns, for each point with a single warp, the clocks per instruction."""
    return {
        point: Measured(LANES / result.value, LANES / result.high, LANES / result.low, result.runs)
        for point, result in points.items()
        if point.warps == 1
    }


def _scheduling_wait(points: Mapping[Point, Measured]) -> Measured | None:
    """Returns the clocks per instruction of a single warp at the smallest distance at which it is
    as fast as at any."""
    waits = _waits(points)
    if not waits:
        return None
    shortest = min(wait.value for wait in waits.values())
    fast = [point for point, wait in waits.items() if wait.value <= shortest * (1 + _SAME)]
    return waits[min(fast, key=lambda point: point.distance)]


def _dependence_wait(points: Mapping[Point, Measured]) -> Measured | None:
    return _waits(points).get(Point(Mode.WRITE_READ, 1, 1))


def _least_warps(
    points: Mapping[Point, Measured], best: Measured
) -> dict[tuple[Mode, int], int]:  # fmt: skip
    """Returns the fewest warps with nearly the best throughput, by mode and distance; only those
    that reach it."""
    fewest: dict[tuple[Mode, int], int] = {}
    for point in sorted(_near(points, best)):
        fewest.setdefault((point.mode, point.distance), point.warps)
    return fewest


def _overhead(points: Mapping[Point, Measured], best: Measured, blocks: int) -> int | None:
    """Returns how many warps more than expected reach nearly the best throughput; None: they do
    not. Expected are as many as would if each were as fast as a warp alone.

    Args:
        points: results per clock.
        best: the best of them.
        blocks: processing blocks; only multiples of this number of warps count.
    """
    best_point = next(point for point, result in points.items() if result is best)
    curve = {p.warps: result.value for p, result in points.items() if p[:2] == best_point[:2]}
    even = [warps for warps in sorted(curve) if warps % blocks == 0]
    if 1 not in curve:
        return None
    enough = next((warps for warps in even if warps * curve[1] >= NEAR * best.value), None)
    reached = next((warps for warps in even if curve[warps] >= NEAR * best.value), None)
    return None if enough is None or reached is None else max(0, reached - enough)


def _best_share(
    points: Mapping[Point, Measured], best: Measured | None, blocks: int, *, is_even: bool
) -> float | None:
    """Returns the share of points with nearly the best throughput, 0 to 1, among the loops that
    reach it at all; None: there is no such point.

    Args:
        points: results per clock.
        best: the best of them.
        blocks: processing blocks.
        is_even: whether only points count at which each processing block has as many warps; else
            only the others.
    """
    if best is None:
        return None
    near = set(_near(points, best))
    loops = {point[:2] for point in near}
    candidates = [p for p in points if p[:2] in loops and (p.warps % blocks == 0) is is_even]
    return sum(point in near for point in candidates) / len(candidates) if candidates else None


def _skew(runs: Iterable[Run]) -> Skew | None:
    """Returns the greatest number of clocks between the first and the last start, and end, of the
    warps of an SM; None: no SM had several."""
    skews = [
        (int(np.ptp(warps["start"])), int(np.ptp(warps["end"])))
        for run in runs
        for warps in _by_sm(run)
        if len(warps) > 1
    ]
    if not skews:
        return None
    return Skew(max(starting for starting, _ in skews), max(ending for _, ending in skews))


def _by_sm(run: Run) -> list[np.ndarray]:
    return [run.warps[run.warps["smid"] == sm] for sm in np.unique(run.warps["smid"])]


def _is_whole(run: Run, sms: int) -> bool:
    """Returns whether all warps of a run have left a record, on as many SMs as the run was for."""
    counts = [len(warps) for warps in _by_sm(run)]
    wanted = 1 if run.key.scope is Scope.ONE_SM else sms
    return counts == [run.key.warps] * wanted


def _is_even(run: Run, blocks: int) -> bool:
    return run.key.warps % blocks == 0


def _is_balanced(run: Run, blocks: int) -> bool:
    return all(
        np.ptp(np.bincount(warps["slot"] % blocks, minlength=blocks)) <= 1 for warps in _by_sm(run)
    )
