"""Profiles of programs that the model ran, without the durations of blocks: a known truth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

import tbsched
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import CallLengths
from tbsched.prediction.predict import predict
from tbsched.program.program import MEASURED, TRANSFERS, Program
from tbsched.program.sequence import Sequence, with_launches
from tbsched.traces.trace import Trace


def profile_of(
    trace: Trace,
    host: Iterable[float],
    *,
    longer_ns: int = 0,
    call_ns: int = 0,
    device: str | DeviceSpec = "h200",
) -> Program:
    """What a profiler would write about a timed prediction.

    Args:
        trace: a prediction with ``host``.
        host: with which it was made.
        longer_ns: how much longer kernels are than their blocks.
        call_ns: how much longer each call is than the device's own.
        device: of the prediction.
    """
    sequence = trace.sequence
    rows = np.full(len(trace), -1, MEASURED)
    rows["name"] = [launch.name or "" for launch in sequence.launches]
    rows["stream"] = [x.stream if isinstance(x.stream, int) else -1 for x in sequence.launches]
    rows["start_ns"] = [int(p.start_ns.min()) for p in trace if p.start_ns is not None]
    rows["end_ns"] = [int(p.end_ns.max()) for p in trace if p.end_ns is not None]
    rows["end_ns"] += longer_ns
    assert trace.issue_times is not None
    issued_ns = np.rint(np.array(trace.issue_times) * 1e9)
    rows["call_ns"] = issued_ns - call_ns
    lengths = CallLengths(tbsched.device(device))
    took = [(x, lengths.next_ns(x, getattr(x, "host", 0))) for x in sequence]
    rows["return_ns"] = issued_ns + [length for event, length in took for _ in event.launches]
    for key in ("start_ns", "end_ns", "call_ns", "return_ns"):
        rows[key] += call_ns
    moved = np.empty(len(sequence.transfers), TRANSFERS)
    if trace.transfer_ns is not None and len(moved):
        moved["start_ns"], moved["end_ns"] = trace.transfer_ns.T
    launches = [replace(launch, duration=1e-6) for launch in sequence.launches]
    gaps = tuple(max(0.0, gap - call_ns / 1e9) for gap in host)
    return Program(with_launches(sequence, launches), gaps, rows, moved)


def profiled(sequence: Sequence, device: str | DeviceSpec, host: float = 1e-6) -> Program:
    """The profile of a program whose host calls after so many seconds."""
    gaps = [host] * len(sequence)
    return profile_of(predict(sequence, device, host=gaps), gaps, device=device)
