"""Two traces of one timed sequence: what ran at the same time, and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.program.checks import instance, seconds
from tbsched.shown import Shown
from tbsched.traces.hang import refuse_hang
from tbsched.traces.trace import Trace

TOLERANCE = 0.05
# Below a microsecond GPUs tell no times apart.
SHORTEST_NS = 1000.0


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """How far a launch was predicted too late, in multiples of the mean duration of its blocks.

    Attributes:
        start_error: predicted less observed start of its first block.
        end_error: predicted less observed end of its last block.
        starts: share of its blocks that start within the tolerance, 0 to 1.

    Example:
        >>> trace = tb.predict(tb.Sequence([tb.Launch(8, 64, 32, duration=1e-5)]), "h200")
        >>> tb.compare_times(trace, trace).launches
        (LaunchTimes(start_error=0.0, end_error=0.0, starts=1.0),)
    """

    start_error: float
    end_error: float
    starts: float


@dataclass(frozen=True, slots=True, repr=False)
class TimeDiff(Shown):
    """What :func:`compare_times` found.

    Attributes:
        launches: one :class:`LaunchTimes` per launch.
        pairs: pairs of launches.
        pairs_agreeing: how many of them are concurrent in both traces, or in neither.
        blocks: blocks of all launches.
        starts_agreeing: how many of them start within the tolerance.
        makespan: observed, seconds.
        makespan_error: of the predicted makespan, as a share of the observed one.
        tolerance: as given.

    Example:
        >>> program = tb.Sequence(2 * [tb.Launch(132, 1024, 64, stream=0, duration=1e-4)])
        >>> a, b = (tb.predict(program, "h200", launch_interval=s) for s in (0.0, 1e-6))
        >>> diff = tb.compare_times(a, b)
        >>> diff.pairs, diff.pairs_agreeing, diff.blocks, diff.starts_agreeing
        (1, 1, 264, 264)
    """

    launches: tuple[LaunchTimes, ...]
    pairs: int
    pairs_agreeing: int
    blocks: int
    starts_agreeing: int
    makespan: float
    makespan_error: float
    tolerance: float


def compare_times(
    prediction: Trace, observation: Trace, *, tolerance: float = TOLERANCE
) -> TimeDiff:
    """Compares when the blocks of a timed sequence ran.

    Times count from the first start of each trace on. A launch lasts from the start of its first
    block to the end of its last. Two launches are concurrent if they overlap for more than
    ``tolerance`` of the shorter one. Otherwise a launch whose blocks leave microseconds apart would
    be concurrent with the one that takes their room. A launch's duration is the mean over its
    blocks.

    Args:
        prediction, observation: traces of the same sequence.
        tolerance: as a share of durations, 0.05 being 5 %.

    Raises:
        TypeError: not traces.
        ValueError: different sequences, one without launches or durations, or a trace without
            times.

    Example:
        >>> program = tb.Sequence(2 * [tb.Launch(264, 1024, 64, duration=1e-3)])
        >>> trace = tb.predict(program, "h200")
        >>> tb.compare_times(trace, trace)
        <TimeDiff: 100.00 % of pairs concurrent alike, 100.00 % of starts>
    """
    instance("compare_times", "prediction", prediction, Trace)
    instance("compare_times", "observation", observation, Trace)
    for trace in (prediction, observation):
        if trace.others:
            raise ValueError("compare_times: a trace of several GPUs; it knows one")
        refuse_hang("compare_times", trace)
    if prediction.sequence != observation.sequence:
        raise ValueError("compare_times: sequence: the traces are of different sequences")
    launches = prediction.sequence.launches
    if not launches or not prediction.sequence.timed:
        raise ValueError("compare_times: sequence: launches with durations are needed")
    seconds("compare_times", "tolerance", tolerance)
    durations = [max(float(np.mean(launch.duration_ns())), SHORTEST_NS) for launch in launches]
    (a_starts, a_ends), (b_starts, b_ends) = (_times(x) for x in (prediction, observation))
    close = [
        np.abs(a - b) <= tolerance * duration
        for a, b, duration in zip(a_starts, b_starts, durations, strict=True)
    ]
    times = tuple(
        LaunchTimes(
            float(a_start.min() - b_start.min()) / duration,
            float(a_end.max() - b_end.max()) / duration,
            float(near.mean()),
        )
        for a_start, a_end, b_start, b_end, duration, near in zip(
            a_starts, a_ends, b_starts, b_ends, durations, close, strict=True
        )
    )
    pairs = np.triu_indices(len(launches), 1)
    a, b = (_concurrent(*x, tolerance) for x in ((a_starts, a_ends), (b_starts, b_ends)))
    return TimeDiff(
        launches=times,
        pairs=len(pairs[0]),
        pairs_agreeing=int(np.count_nonzero(a[pairs] == b[pairs])),
        blocks=sum(launch.blocks for launch in launches),
        starts_agreeing=sum(int(near.sum()) for near in close),
        makespan=observation.makespan,
        makespan_error=prediction.makespan / max(observation.makespan, 1e-9) - 1,
        tolerance=tolerance,
    )


def _times(trace: Trace) -> tuple[list[Int64Array], list[Int64Array]]:
    """Returns the starts and ends of each launch's blocks, in ns from the first start."""
    rows = trace.timeline
    bounds = np.cumsum([launch.blocks for launch in trace.sequence.launches])[:-1]
    first = rows["start_ns"].min()
    return (
        np.split(rows["start_ns"] - first, bounds),
        np.split(rows["end_ns"] - first, bounds),
    )


def _concurrent(
    starts: list[Int64Array], ends: list[Int64Array], tolerance: float
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Returns whether launches overlapped, bool (launches, launches)."""
    begin: Float64Array = np.array([x.min() for x in starts], np.float64)
    end: Float64Array = np.array([x.max() for x in ends], np.float64)
    overlap = np.minimum.outer(end, end) - np.maximum.outer(begin, begin)
    shorter = np.minimum.outer(end - begin, end - begin)
    return np.asarray(overlap > tolerance * shorter)
