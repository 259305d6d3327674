"""The launches of a program as they started, so that no error of one travels to the next."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.predict import predict
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.program.duration import Drawn
from tbsched.program.events.launch import Launch
from tbsched.program.sequence import Sequence
from tbsched.traces.placement import Placement

BoolArray: TypeAlias = npt.NDArray[np.bool_]
_QUEUES = 1024  # as many as a device can have: no launch is to wait behind another one in its queue


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
        """Launches, and when the kernel of each ran, in the order of their starts."""
        apart = replace(spec, hardware_queues=_QUEUES)
        return cls(tuple(map(alone, launches)), start_ns, end_ns, apart)

    def some(self, rows: Int64Array) -> AsMeasured:
        """Some of them, ascending."""
        launches = tuple([self.launches[k] for k in rows.tolist()])
        return AsMeasured(launches, self.start_ns[rows], self.end_ns[rows], self.spec)

    def predicted(
        self, duration_ns: Float64Array, spread_ns: Float64Array
    ) -> tuple[Placement, ...]:
        """Where the blocks of each go, and when (see :func:`with_duration`)."""
        times = zip(self.launches, duration_ns.tolist(), spread_ns.tolist(), strict=True)
        launches = [with_duration(*each) for each in times]
        issued = ((self.start_ns - self.start_ns[0]) / 1e9).tolist()
        sequence = merged(Sequence(launches), self.spec)
        return predict(sequence, self.spec, issue_times=issued).placements

    def times(self, placements: tuple[Placement, ...]) -> tuple[Float64Array, Float64Array]:
        """How much later than measured each starts by a prediction, and when it ends, in ns.

        The end counts from the measured start.
        """
        first = [int(p.start_ns.min()) for p in placements if p.start_ns is not None]
        last = [int(p.end_ns.max()) for p in placements if p.end_ns is not None]
        there = self.start_ns - self.start_ns[0] + self.spec.launch_latency_ns
        return (np.array(first) - there).astype(np.float64), np.array(last) - there.astype(float)

    def behind(self, wrong: BoolArray) -> BoolArray:
        """Of each, whether one of these ran when it was measured to start."""
        begins, ends = np.sort(self.start_ns[wrong]), np.sort(self.end_ns[wrong])
        found = begins.searchsorted(self.start_ns) - ends.searchsorted(self.start_ns, "right")
        return np.asarray(found > 0)


def with_duration(launch: Launch, longest_ns: float, spread_ns: float) -> Launch:
    """The launch whose longest blocks run so long, and the shortest so much shorter.

    Durations for each block, which a profile may have, stay.
    """
    if isinstance(launch.duration, tuple):
        return launch
    half = round(min(spread_ns, longest_ns) / 2) / 1e9
    if half == 0:
        return replace(launch, duration=round(longest_ns) / 1e9)
    mean = max(round(longest_ns) / 1e9 - half, half)
    return replace(launch, duration=Drawn("uniform", mean, half))


def alone(launch: Launch) -> Launch:
    """The launch in a stream of its own, where it waits for nothing but room."""
    return Launch(
        launch.blocks, launch.threads, launch.registers, launch.shared_memory,
        carveout=launch.carveout, cluster=launch.cluster, priority=launch.priority,
        duration=launch.duration, partition=launch.partition, cooperative=launch.cooperative,
    )  # fmt: skip
