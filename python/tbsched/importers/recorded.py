"""Traces of tbsched itself as programs: they say of each block when it ran."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tbsched import storage
from tbsched.errors import on_one_line
from tbsched.hardware.catalogue import device_titled
from tbsched.importers.reading.selection import Selection
from tbsched.prediction.recorded import ran_ns
from tbsched.program.arrays import StructuredArray, read_only
from tbsched.program.program import MEASURED, TRANSFERS, Program
from tbsched.program.sequence import Event, with_launches
from tbsched.traces.files import load_traces
from tbsched.traces.timeline import has_times
from tbsched.traces.trace import Trace

NAME = "trace of tbsched"


def takes(head: bytes) -> bool:
    """Returns whether a file with these first bytes is a trace file of tbsched."""
    return b'"tbsched_trace"' in head.partition(b"\n")[0]


def read(path: Path, selection: Selection) -> Program:
    """Returns the program of the one trace of a file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no trace file, not one trace, one without times or of a program that hangs, or a
            part is selected.
    """
    if selection:
        raise ValueError(f"{storage.shown(path)}: of a trace of tbsched no part can be selected")
    traces = load_traces(path)
    if len(traces) != 1:
        raise ValueError(
            f"{storage.shown(path)}: {len(traces)} traces; a program is one of them: load_traces, "
            "then save_traces of the one"
        )
    (trace,) = traces
    if not trace.sequence.timed or not has_times(trace):
        raise ValueError(
            f"{storage.shown(path)}: does not say when blocks ran, of launches with durations"
        )
    if trace.hang is not None:
        hangs = " ".join(trace.hang.text.split())
        raise ValueError(
            f"{storage.shown(path)}: the program never ends, so there is no time to account for; "
            f"load_traces(path)[0].hang says why: {on_one_line(hangs)}"
        )
    try:
        return _program(trace)
    except ValueError as error:
        raise ValueError(f"{storage.shown(path)}: {error}") from None


def _program(trace: Trace) -> Program:
    """Returns the program that a trace of timed launches recorded."""
    spec = device_titled(trace.device.name, trace.device.sms)
    assumed = []
    gaps = trace.host_gaps
    if gaps is None:
        gaps, sentence = _gaps_of_issue(trace)
        assumed.append(sentence)
    if spec is None:
        assumed.append("How long blocks waited for memory: assumed that they did not.")
        ran = [placement.end_ns - placement.start_ns for placement in trace]  # type: ignore[operator]
    else:
        ran = list(ran_ns(trace, spec))
    launches = [
        replace(launch, duration=tuple((times / 1e9).tolist()))
        for launch, times in zip(trace.sequence.launches, ran, strict=True)
    ]
    return Program(
        sequence=with_launches(trace.sequence, launches), host=gaps, measured=_measured(trace),
        transfers=_transfers(trace), device=trace.device.name, sms=trace.device.sms, format=NAME,
        sources={"duration": "start_ns and end_ns of each block", "host": "called_ns"},
        assumed=tuple(assumed),
    )  # fmt: skip


def _gaps_of_issue(trace: Trace) -> tuple[tuple[float, ...], str]:
    """Returns gaps between calls by the times of issue alone, and what that assumes."""
    times = trace.issue_times
    if times is None:
        return (0.0,) * len(trace.sequence), "When the host called: assumed as soon as it could."
    remaining_times = iter(times)
    gaps: list[float] = []
    last: dict[int, float] = {}
    for event in trace.sequence:
        launch_times = [next(remaining_times) for _ in event.launches]
        host = getattr(event, "host", 0)
        gaps.append(max(0.0, launch_times[0] - last.get(host, 0.0)) if launch_times else 0.0)
        last[host] = launch_times[0] if launch_times else last.get(host, 0.0)
    sentence = "When calls other than launches were made, and how long calls took: assumed at once."
    return tuple(gaps), sentence


def _measured(trace: Trace) -> StructuredArray:
    """Returns the rows of ``MEASURED``, without calls, as these have a clock of their own."""
    launches = trace.sequence.launches
    measured = np.empty(len(trace), MEASURED)
    measured["name"] = [launch.name or "" for launch in launches]
    measured["stream"] = [stream for event in trace.sequence for stream in _streams_of(event)]
    measured["start_ns"] = [placement.start_ns.min() for placement in trace]  # type: ignore[union-attr]
    measured["end_ns"] = [placement.end_ns.max() for placement in trace]  # type: ignore[union-attr]
    for name in ("call_ns", "return_ns", "channel", "shared_memory_executed", "work"):
        measured[name] = -1
    return read_only(measured)


def _streams_of(event: Event) -> list[int]:
    """Returns the stream of each launch of an event; -1: the legacy one, or one of its own."""
    stream = getattr(event, "stream", None)
    return [stream if isinstance(stream, int) else -1] * len(event.launches)


def _transfers(trace: Trace) -> StructuredArray:
    """Returns the measured times of copies and memsets, a row each, as ``TRANSFERS``."""
    transfers = np.full(len(trace.sequence.transfers), -1, TRANSFERS)
    if trace.transfer_ns is not None:
        transfers["start_ns"], transfers["end_ns"] = trace.transfer_ns.T
    return read_only(transfers)
