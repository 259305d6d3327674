"""Traces as a table: a row per block."""

from __future__ import annotations

from typing import Any

import numpy as np

from tbsched.prediction.processes import Processes
from tbsched.program.arrays import Int32Array, numbered_blocks, objects
from tbsched.traces.timeline import has_times
from tbsched.traces.trace import Trace


def trace_columns(trace: Trace) -> dict[str, Any]:
    """Which block of which launch was on which SM; when, or what its launch waited for."""
    launches = trace.sequence.launches
    sizes = np.array([launch.blocks for launch in launches], np.int64)
    launch, block = (numbers.astype(np.int32) for numbers in numbered_blocks(sizes))
    names = objects(launch.name for launch in launches)
    limiters = objects(placement.limiter for placement in trace)
    found: dict[str, Any] = {"launch": launch, "name": names[launch], "block": block}
    if has_times(trace):
        rows = trace.timeline
        found |= {key: rows[key].copy() for key in ("sm", "start_ns", "end_ns")}
        found["limiter"] = limiters[launch]
    else:
        found["smid"] = _joined([placement.smid for placement in trace])
        final = [p.final_smid for p in trace if p.final_smid is not None]
        if len(final) == len(trace):
            found["final_smid"] = _joined(final)
        found["limiter"] = np.where(found["smid"] < 0, limiters[launch], objects([None]))
    queues = [placement.hardware_queue for placement in trace]
    if queues and None not in queues:
        found["hardware_queue"] = np.array(queues, np.int32)[launch]
    return found


def _joined(smids: list[Int32Array]) -> Int32Array:
    return np.concatenate([np.empty(0, np.int32), *smids])


def processes_columns(found: Processes) -> dict[str, Any]:
    """Which process had the GPU when."""
    return {name: found.turns[name].copy() for name in ("process", "begin_ns", "end_ns")}
