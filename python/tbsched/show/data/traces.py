"""Traces as what JSON can hold."""

from __future__ import annotations

from typing import Any

from tbsched.launcher.meet import Meeting
from tbsched.prediction.processes import Processes
from tbsched.program.arrays import StructuredArray
from tbsched.program.sequence import Launch, events_to_data
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.timeline import has_times
from tbsched.traces.trace import Trace

_ARRAYS = ("smid", "final_smid", "start_ns", "end_ns", "warp_slots")


def trace_data(trace: Trace) -> dict[str, Any]:
    """Where the blocks of each launch went, and when, and what launches waited for."""
    pairs = zip(trace.sequence.launches, trace, strict=True)
    return {
        "id": trace.id,
        "device": info_data(trace.device),
        "events": events_to_data(trace.sequence),
        "launches": [_launch(number, *pair) for number, pair in enumerate(pairs)],
        "makespan": trace.makespan if len(trace) and has_times(trace) else None,
        "transfer_ns": None if trace.transfer_ns is None else trace.transfer_ns.tolist(),
        "waits": None if trace.waits is None else rows_data(trace.waits),
    }


def info_data(info: DeviceInfo) -> dict[str, Any]:
    """As the header of a trace file has it."""
    return {"name": info.name, "sms": info.sms, **info.details}


def rows_data(table: StructuredArray) -> list[dict[str, Any]]:
    """An object per row of a structured array."""
    names = table.dtype.names or ()
    columns = [table[name].tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _launch(number: int, launch: Launch, placement: Placement) -> dict[str, Any]:
    arrays = {key: getattr(placement, key) for key in _ARRAYS}
    return {
        "launch": number,
        "name": launch.name,
        "blocks": launch.blocks,
        "placed": placement.placed,
        "limiter": placement.limiter,
        "hardware_queue": placement.hardware_queue,
        **{key: None if x is None else x.tolist() for key, x in arrays.items()},
    }


def meeting_data(found: Meeting) -> dict[str, Any]:
    """Whether each group has met, how many blocks never came, and where the others went."""
    return {
        "groups": [list(group) for group in found.groups],
        "met": list(found.met),
        "missing": {str(launch): blocks for launch, blocks in found.missing.items()},
        "trace": trace_data(found.trace),
    }


def processes_data(found: Processes) -> dict[str, Any]:
    """What each process does, who had the GPU when, and the SM numbers that MPS clients read."""
    return {
        "makespan": found.makespan,
        "turns": rows_data(found.turns),
        "traces": [trace_data(trace) for trace in found.traces],
        "seen": [trace_data(trace) for trace in found.seen],
    }
