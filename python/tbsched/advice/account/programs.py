"""What ran and what the host did, of a program whose profile says no more than times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tbsched.program.activity import COPY, KERNEL, MEMSET, UNKNOWN, ActivityBuilder, copy_name
from tbsched.program.program import Program
from tbsched.program.sequence import (
    Copy,
    Event,
    GraphLaunch,
    HostCall,
    HostFunction,
    Launch,
    Memset,
    RecordEvent,
    Stream,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)
from tbsched.traces.trace import Trace

_LEGACY = -1  # the number of a stream that has none
_CALLS: dict[type[Event], str] = {
    Launch: "cudaLaunchKernel", GraphLaunch: "cudaGraphLaunch", Memset: "cudaMemsetAsync",
    RecordEvent: "cudaEventRecord", WaitEvent: "cudaStreamWaitEvent",
    HostFunction: "cudaLaunchHostFunc", WriteValue: "cuStreamWriteValue",
    WaitValue: "cuStreamWaitValue",
}  # fmt: skip


def with_activity(program: Program, prediction: Trace | None) -> Program:
    """Returns the program with an activity made of its times. Calls of which the profile does not
    say when they were made are where the prediction has them."""
    builder = ActivityBuilder()
    measured, transfers = program.measured.copy(), program.transfers.copy()
    called = None if prediction is None else prediction.call_ns
    offset = 0
    if prediction is not None and len(measured):
        starts = [int(p.start_ns.min()) for p in prediction if p.start_ns is not None]
        offset = int(measured["start_ns"].min()) - min(starts)
    calls = np.full(len(program.sequence), UNKNOWN, np.int64)
    launch = transfer = functions = 0
    for index, event in enumerate(program.sequence):
        correlation = index + 1  # as a correlation
        begin_ns, end_ns = -1, -1
        if called is not None:
            begin_ns, end_ns = (int(time) + offset for time in called[index])
        if event.launches and measured["call_ns"][launch] >= 0:
            begin_ns = int(measured["call_ns"][launch])
            end_ns = max(begin_ns, int(measured["return_ns"][launch]))
        host, gpu = getattr(event, "host", 0), getattr(event, "gpu", 0)
        if called is not None or begin_ns >= 0:
            calls[index] = builder.add_call(_call(event), 0, host, begin_ns, end_ns, correlation)
            if any(launch_.first_use for launch_ in event.launches):
                builder.loaded(correlation)
        for node in event.graph.nodes if isinstance(event, GraphLaunch) else (event,):
            stream = _stream(getattr(event, "stream", None))
            if isinstance(node, Launch):
                row = measured[launch]
                measured["work"][launch] = builder.add_work(
                    gpu, KERNEL, node.name or f"launch {launch}", stream, int(row["start_ns"]),
                    int(row["end_ns"]), correlation, node=launch,
                )  # fmt: skip
                launch += 1
            elif isinstance(node, HostFunction | Copy | Memset):
                times = int(transfers["start_ns"][transfer]), int(transfers["end_ns"][transfer])
                if isinstance(node, HostFunction):
                    if times[0] >= 0:
                        name = node.name or f"host function {functions}"
                        builder.add_host_function(gpu, name, stream, *times, correlation)
                    functions += 1
                else:
                    is_copy = isinstance(node, Copy)
                    kind = node.kind if isinstance(node, Copy) else "memset"
                    pinned = node.pinned if isinstance(node, Copy) and kind != "d2d" else None
                    transfers["work"][transfer] = builder.add_work(
                        gpu, COPY if is_copy else MEMSET, copy_name(kind, pinned), stream, *times,
                        correlation, size=node.bytes, node=-1 - transfer,
                    )  # fmt: skip
                transfer += 1
            elif isinstance(event, GraphLaunch):  # it records a CUDA event, or waits for one
                transfer += 1
    activity, _ = builder.built()
    return replace(program, measured=measured, transfers=transfers, activity=activity, calls=calls)


def _stream(stream: Stream | None) -> int:
    """Returns the number of a stream; -1: a stream without a number."""
    return stream if isinstance(stream, int) else _LEGACY


def _call(event: Event) -> str:
    """Returns the name of the CUDA function that issues an event."""
    match event:
        case Copy():
            return "cudaMemcpy" if event.blocking else "cudaMemcpyAsync"
        case Synchronize():
            if event.event is not None:
                return "cudaEventSynchronize"
            return "cudaDeviceSynchronize" if event.stream is None else "cudaStreamSynchronize"
        case HostCall():
            return event.name
    return _CALLS.get(type(event), type(event).__name__)
