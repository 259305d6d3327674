"""The launches of a program as they started, so that no error of one travels to the next."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.predict import predict, predict_launches
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.program.duration import Drawn
from tbsched.program.events.launch import Launch
from tbsched.program.sequence import Sequence
from tbsched.traces.placement import Placement

BoolArray: TypeAlias = npt.NDArray[np.bool_]
_QUEUES = 1024  # the most that a device can have: no launch waits behind another one in its queue


@dataclass(frozen=True, slots=True)
class AsMeasured:
    """Launches that are issued when their kernels were measured to start.

    They wait for nothing but room on the SMs: streams, events, graphs and the loading of kernels
    had their effect on the start already.

    Attributes:
        launches: in the order of their starts.
        start_ns, end_ns: when the kernel of each ran, int64.
        spec: the device.
    """

    launches: tuple[Launch, ...]
    start_ns: Int64Array
    end_ns: Int64Array
    spec: DeviceSpec

    @classmethod
    def of(
        cls,
        launches: SequenceOf[Launch],
        start_ns: Int64Array,
        end_ns: Int64Array,
        spec: DeviceSpec,
    ) -> AsMeasured:
        """Returns launches without dependences, to be issued when their kernels started.

        Args:
            launches, start_ns, end_ns: in the order of the starts.
            spec: the device.
        """
        apart = replace(spec, hardware_queues=_QUEUES)
        return cls(tuple(map(alone, launches)), start_ns, end_ns, apart)

    def subset(self, rows: Int64Array) -> AsMeasured:
        """Returns the launches of some rows, which ascend."""
        launches = tuple([self.launches[k] for k in rows.tolist()])
        return AsMeasured(launches, self.start_ns[rows], self.end_ns[rows], self.spec)

    def predicted(
        self, duration_ns: Float64Array, spread_ns: Float64Array, *, each_block: bool = False
    ) -> tuple[Placement, ...]:
        """Returns the predicted placements of the launches, each issued at its measured start.

        Args:
            duration_ns, spread_ns: as in :class:`BlockTimes`.
            each_block: whether placements have a row per block; else one per launch.
        """
        at_once = np.zeros_like(duration_ns)
        times = BlockTimes(duration_ns, spread_ns, at_once, ends_late=False)
        launches = timed_launches(self.launches, times)
        issued = ((self.start_ns - self.start_ns[0]) / 1e9).tolist()
        sequence = merged(Sequence(launches), self.spec)
        predicted = predict if each_block else predict_launches
        return predicted(sequence, self.spec, issue_times=issued).placements

    def times(self, placements: tuple[Placement, ...]) -> tuple[Float64Array, Float64Array]:
        """Returns the predicted start and end of each launch, float64 ns (launches,) each, counted
        from the measured start of its kernel."""
        first = [int(p.start_ns.min()) for p in placements if p.start_ns is not None]
        last = [int(p.end_ns.max()) for p in placements if p.end_ns is not None]
        measured = self.start_ns - self.start_ns[0] + self.spec.launch_latency_ns
        start_ns, end_ns = np.array(first) - measured, np.array(last) - measured
        return start_ns.astype(np.float64), end_ns.astype(np.float64)

    def behind(self, wrong: BoolArray) -> BoolArray:
        """Returns a mask of the launches whose kernels started, as measured, while a launch of
        ``wrong`` (a mask) was predicted to run."""
        begins, ends = np.sort(self.start_ns[wrong]), np.sort(self.end_ns[wrong])
        running = begins.searchsorted(self.start_ns) - ends.searchsorted(self.start_ns, "right")
        return np.asarray(running > 0)


class BlockTimes(NamedTuple):
    """Durations of blocks and delays of launches, which a prediction takes.

    Attributes:
        duration_ns: duration of each launch's longest blocks.
        spread_ns: how much shorter its shortest blocks run. Below 0: the last blocks are shortest.
        delay_ns: how much later it is queued for room.
        ends_late: with a spread above 0, only the last block is a long one.
    """

    duration_ns: Float64Array
    spread_ns: Float64Array
    delay_ns: Float64Array
    ends_late: bool


def timed_launches(launches: Iterable[Launch], times: BlockTimes) -> list[Launch]:
    """Returns the launches with these block durations and delays. A launch that has a duration for
    each block keeps these."""
    longest, spread, delay = (values.tolist() for values in times[:3])
    rows = zip(launches, longest, spread, delay, strict=True)
    return [_timed(*row, ends_late=times.ends_late) for row in rows]


def _timed(
    launch: Launch, longest_ns: float, spread_ns: float, delay_ns: float, *, ends_late: bool
) -> Launch:
    """Returns a launch with a delay and block durations, equal or spread."""
    delay = round(delay_ns) / 1e9 or None
    if isinstance(launch.duration, tuple):
        return launch if delay is None else replace(launch, delay=delay)
    longest = round(longest_ns) / 1e9
    half = round(min(abs(spread_ns), longest_ns) / 2) / 1e9
    duration: float | Drawn = longest
    if half > 0 and spread_ns > 0 and ends_late:
        rest = max(longest - 2 * half, 1e-9)
        duration = Drawn("last", rest, longest - rest)
    elif half > 0:
        mean = max(longest - half, half)
        duration = Drawn("uniform" if spread_ns > 0 else "falling", mean, half)
    return replace(launch, duration=duration, delay=delay)


def alone(launch: Launch) -> Launch:
    """Returns the launch in a stream of its own, where it waits for nothing but room."""
    return Launch(
        launch.blocks, launch.threads, launch.registers, launch.shared_memory,
        carveout=launch.carveout, cluster=launch.cluster, priority=launch.priority,
        duration=launch.duration, partition=launch.partition, cooperative=launch.cooperative,
    )  # fmt: skip
