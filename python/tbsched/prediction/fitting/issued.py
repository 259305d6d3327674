"""When launches of a profile were issued, by when their calls returned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import CallLengths
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.program.events.graph import GraphLaunch
from tbsched.program.program import Program

_MIN_LAUNCHES = 5  # launches that a median needs
_MAX_LATER_NS = 5000  # larger differences have other causes and are left out


@dataclass(frozen=True, slots=True)
class IssuedCalls:
    """The events of a program that launch, (calls,) each.

    Attributes:
        event: the place in the sequence, int64.
        first: its first launch, int64.
        previous: the row of the one before it of the same host thread, int64; -1: it is the first.
        latency_ns: from the call until its first kernel starts, if that waits for nothing, int64.
        issued_ns: when it was issued, float64, on the clock of the profile. Under a profiler a call
            takes longer, and the kernel starts soon after the call returned. So a launch is taken
            to be issued as long before its call returned as on the device without a profiler, and
            early enough to have started when it did.
        within_ns: how long after the begin of the call that is, by the device, int64.
    """

    event: Int64Array
    first: Int64Array
    previous: Int64Array
    latency_ns: Int64Array
    issued_ns: Float64Array
    within_ns: Int64Array

    @classmethod
    def of(cls, program: Program, spec: DeviceSpec) -> IssuedCalls | None:
        """Returns the calls of a program; None: the profile does not say when they were made."""
        rows = program.measured
        if not len(rows) or (rows["call_ns"] < 0).any():
            return None
        calls: list[tuple[int, ...]] = []
        lengths = CallLengths(spec)
        last: dict[int, int] = {}
        number = 0
        for place, event in enumerate(program.sequence):
            count = len(event.launches)
            host = getattr(event, "host", 0)
            call_ns = lengths.next_ns(event, host)
            if count:
                is_graph = isinstance(event, GraphLaunch)
                latency = spec.graph_latency_ns if is_graph else spec.launch_latency_ns
                began = int(rows["start_ns"][number : number + count].min())
                within = call_ns - spec.launch_call_ns
                calls.append((place, number, last.get(host, -1), latency, began, within))
                last[host] = len(calls) - 1
            number += count
        place, first, previous, latency_ns, started_ns, within_ns = np.array(calls, np.int64).T
        returned_ns = np.maximum(rows["return_ns"], rows["call_ns"])[first]
        issued_ns = returned_ns - spec.launch_call_ns
        later_ns = _later_ns(program, issued_ns, issued_ns + latency_ns, started_ns)
        # No kernel starts before its launch has reached the GPU.
        issued = np.minimum(issued_ns + later_ns, started_ns - latency_ns)
        return cls(place, first, previous, latency_ns, issued, within_ns)


def _later_ns(
    program: Program, issued_ns: Int64Array, expected_ns: Int64Array, started_ns: Int64Array
) -> float:
    """Returns the median of the ns by which kernels that nothing held up start later than
    predicted."""
    ended = np.concatenate([program.measured["end_ns"], program.transfers["end_ns"]])
    begun = np.concatenate([program.measured["start_ns"], program.transfers["start_ns"]])
    running = np.sort(begun).searchsorted(issued_ns) - np.sort(ended).searchsorted(issued_ns)
    later = (started_ns - expected_ns)[running == 0]
    later = later[np.abs(later) <= _MAX_LATER_NS]
    return float(np.median(later)) if len(later) >= _MIN_LAUNCHES else 0.0
