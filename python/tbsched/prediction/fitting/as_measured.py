"""The launches of a program as they started, so that no error of one travels to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.arrays import Float64Array, Int64Array
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
        number: of each, its number in the program.
        issue_times: of each, seconds.
        start_ns: of each, when it starts if there is room, on the clock of the prediction.
        measured_ns: when the kernel of each ran, by its number: starts and ends.
        spec: the device.
    """

    launches: tuple[Launch, ...]
    number: Int64Array
    issue_times: tuple[float, ...]
    start_ns: Int64Array
    measured_ns: tuple[Int64Array, Int64Array]
    spec: DeviceSpec

    @classmethod
    def of(
        cls,
        launches: tuple[Launch, ...],
        start_ns: Int64Array,
        end_ns: Int64Array,
        spec: DeviceSpec,
    ) -> AsMeasured:
        """The launches of a program of which the kernels ran at these times."""
        number = np.argsort(start_ns, kind="stable")
        issued_ns = start_ns[number] - start_ns.min(initial=2**62)
        return cls(
            tuple(_alone(launches[k]) for k in number.tolist()),
            number,
            tuple((issued_ns / 1e9).tolist()),
            issued_ns + spec.launch_latency_ns,
            (start_ns, end_ns),
            replace(spec, hardware_queues=_QUEUES),
        )

    def predicted(self, durations: Float64Array) -> tuple[Placement, ...]:
        """Where the blocks of each go, and when, by the seconds that blocks of each run."""
        launches = [
            launch if isinstance(launch.duration, tuple) else replace(launch, duration=own)
            for launch, own in zip(self.launches, durations[self.number].tolist(), strict=True)
        ]
        return predict(Sequence(launches), self.spec, issue_times=self.issue_times).placements

    def lengths(
        self, placements: tuple[Placement, ...], from_first_block: bool = False
    ) -> Int64Array:
        """How long the kernel of each takes, by its number, ns.

        Args:
            placements: as predicted.
            from_first_block: not from when it was measured to start, where that is earlier.
        """
        ends = [int(p.end_ns.max()) for p in placements if p.end_ns is not None]
        begins = [int(p.start_ns.min()) for p in placements if p.start_ns is not None]
        found = np.empty(len(ends), np.int64)
        found[self.number] = np.array(ends) - (begins if from_first_block else self.start_ns)
        return found

    def behind(self, wrong: BoolArray) -> BoolArray:
        """Of each, whether one of these ran when it was measured to start."""
        start, end = self.measured_ns
        begins = np.sort(start[wrong])
        ends = np.sort(end[wrong])
        before = begins.searchsorted(start) - ends.searchsorted(start, "right")
        return before > 0


def _alone(launch: Launch) -> Launch:
    """In a stream of its own, where it waits for no other."""
    return Launch(
        launch.blocks, launch.threads, launch.registers, launch.shared_memory,
        carveout=launch.carveout, cluster=launch.cluster, priority=launch.priority,
        duration=launch.duration, partition=launch.partition, cooperative=launch.cooperative,
    )  # fmt: skip
