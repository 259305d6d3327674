"""When a host calls, under a profiler that makes its calls longer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.arrays import Int64Array
from tbsched.program.events.graph import GraphLaunch
from tbsched.program.program import Program

_PREDICTIONS = 4
_NEAR_NS = 50
_FEWEST = 5  # launches that say how soon they reach the GPU
_LONGEST_NS = 5000  # by which they do so sooner or later than the device has it


def fitted_host(program: Program, spec: DeviceSpec) -> tuple[tuple[float, ...], float]:
    """Gaps with which launches are predicted to be issued when they were.

    Under a profiler a call takes longer. The kernel then starts soon after the call returned,
    however long that took. So a launch is taken to be issued as long before its call returned as on
    the device without a profiler, and what is left of the call belongs to the gap before it. What
    a call waits for is predicted: no gap makes up for a wait that is predicted to be too long.

    Returns:
        The gaps in seconds, one per event; and by how many nanoseconds that of a launch grew, at
        the median. They are as given if the profile does not say when calls were made.
    """
    if not len(program.measured) or (program.measured["call_ns"] < 0).any():
        return program.host, 0.0
    calls = _Calls.of(program, spec)
    issued_ns = calls.returned_ns - spec.launch_call_ns + _later_ns(program, calls, spec)
    issued_ns = np.rint(issued_ns - issued_ns.min())
    given = np.rint(np.array(program.host) * 1e9)
    gaps = given.copy()
    for _ in range(_PREDICTIONS):
        found = predict(program.sequence, spec, host=(gaps / 1e9).tolist()).issue_times
        assert found is not None
        predicted = np.rint(np.array(found)[calls.first] * 1e9)
        late = issued_ns - (predicted - predicted.min())
        more = late - np.where(calls.previous >= 0, late[calls.previous], 0)
        if np.abs(more).max() <= _NEAR_NS:
            break
        gaps[calls.event] = np.maximum(gaps[calls.event] + more, 0)
    return tuple((gaps / 1e9).tolist()), float(np.median((gaps - given)[calls.event]))


@dataclass(frozen=True, slots=True)
class _Calls:
    """The events of a program that launch, int64 (calls,) each.

    Attributes:
        event: the place in the sequence.
        first: its first launch.
        previous: the row of the one before it of the same host thread; -1: it is the first.
        returned_ns: when it returned, as the profile has it.
        started_ns: when its first kernel started.
        latency_ns: from the call until then, if it waits for nothing.
    """

    event: Int64Array
    first: Int64Array
    previous: Int64Array
    returned_ns: Int64Array
    started_ns: Int64Array
    latency_ns: Int64Array

    @classmethod
    def of(cls, program: Program, spec: DeviceSpec) -> _Calls:
        rows: list[tuple[int, ...]] = []
        last: dict[int, int] = {}
        number = 0
        returned = np.maximum(program.measured["return_ns"], program.measured["call_ns"]).tolist()
        start = program.measured["start_ns"]
        for place, event in enumerate(program.sequence):
            count = len(event.launches)
            if count:
                host = getattr(event, "host", 0)
                is_graph = isinstance(event, GraphLaunch)
                latency = spec.graph_latency_ns if is_graph else spec.launch_latency_ns
                began = int(start[number : number + count].min())
                own = (place, number, last.get(host, -1), returned[number], began, latency)
                last[host] = len(rows)
                rows.append(own)
            number += count
        return cls(*np.array(rows, np.int64).T)


def _later_ns(program: Program, calls: _Calls, spec: DeviceSpec) -> float:
    """How much later than on the device kernels start that wait for nothing; below 0: sooner."""
    ended = np.concatenate([program.measured["end_ns"], program.transfers["end_ns"]])
    begun = np.concatenate([program.measured["start_ns"], program.transfers["start_ns"]])
    issued = calls.returned_ns - spec.launch_call_ns
    running = np.sort(begun).searchsorted(issued) - np.sort(ended).searchsorted(issued)
    later = (calls.started_ns - issued - calls.latency_ns)[running == 0]
    later = later[np.abs(later) <= _LONGEST_NS]
    return float(np.median(later)) if len(later) >= _FEWEST else 0.0
