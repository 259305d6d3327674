"""Traces as a table: a row per block."""

from __future__ import annotations

from typing import Any

import numpy as np

from tbsched.program.arrays import Int32Array
from tbsched.traces.trace import Trace


def trace_columns(trace: Trace) -> dict[str, Any]:
    """Which block of which launch was on which SM; when, or what its launch waited for."""
    launches = trace.sequence.launches
    sizes = np.array([launch.blocks for launch in launches], np.int64)
    launch = np.repeat(np.arange(len(launches), dtype=np.int32), sizes)
    block = np.arange(len(launch)) - np.repeat(sizes.cumsum() - sizes, sizes)
    names = _objects(launch.name for launch in launches)
    limiters = _objects(placement.limiter for placement in trace)
    found = {"launch": launch, "name": names[launch], "block": block.astype(np.int32)}
    if all(p.start_ns is not None and p.end_ns is not None for p in trace):
        rows = trace.timeline
        found |= {key: rows[key].copy() for key in ("sm", "start_ns", "end_ns")}
        found["limiter"] = limiters[launch]
    else:
        found["smid"] = _joined([placement.smid for placement in trace])
        final = [p.final_smid for p in trace if p.final_smid is not None]
        if len(final) == len(trace):
            found["final_smid"] = _joined(final)
        found["limiter"] = np.where(found["smid"] < 0, limiters[launch], None)
    queues = [placement.hardware_queue for placement in trace]
    if queues and None not in queues:
        found["hardware_queue"] = np.array(queues, np.int32)[launch]
    return found


def _objects(values: Any) -> Any:
    listed = list(values)
    found = np.empty(len(listed), np.object_)
    found[:] = listed
    return found


def _joined(smids: list[Int32Array]) -> Int32Array:
    return np.concatenate([np.empty(0, np.int32), *smids])
