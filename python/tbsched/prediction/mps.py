"""Several processes on one GPU under MPS: one scheduler, and SM numbers of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import Calls
from tbsched.prediction.predict import Run
from tbsched.program.arrays import Int32Array
from tbsched.program.sequence import LEGACY_STREAM, Event, Launch, Sequence
from tbsched.traces.trace import Trace

# Fields that name a stream or a CUDA event, which are private to a process.
_NAMES = ("stream", "event", "completion_event")


def run_as_one(
    programs: tuple[Sequence, ...], issue_ns: list[list[int]], run: Run
) -> tuple[Trace, ...]:
    """Returns the traces of processes that share the SMs, with physical SM numbers.

    Raises:
        TypeError, ValueError: as :func:`tbsched.predict`; a launch in the legacy stream.
    """
    calls = sorted(
        (time, number, position, event)
        for number, program in enumerate(programs)
        for position, (event, time) in enumerate(_timed_events(program, issue_ns[number]))
    )
    names: dict[tuple[object, ...], int] = {}

    def renamed(event: Event, number: int) -> Event:
        own: dict[str, Any] = {}
        if isinstance(event, Launch) and event.first_use and event.name is not None:
            own["name"] = f"{event.name} of process {number}"  # which loads kernels of its own
        for field in _NAMES:
            name = getattr(event, field, None)
            if name == LEGACY_STREAM:
                raise ValueError(f"process {number}: stream: the legacy one is not known under MPS")
            if name is not None:
                kind = "stream" if field == "stream" else "event"
                own[field] = names.setdefault((kind, number, name), len(names))
        return replace(event, **own) if own else event

    merged = Sequence([renamed(event, number) for _, number, _, event in calls])
    owners = [number for _, number, _, event in calls for _ in event.launches]
    times = [time for time, _, _, event in calls for _ in event.launches]
    trace = run.predicted(merged, run.events(merged), Calls(issue_ns=times))
    return tuple(_part(trace, program, owners, k) for k, program in enumerate(programs))


def as_seen(traces: tuple[Trace, ...], spec: DeviceSpec) -> tuple[Trace, ...]:
    """Returns the traces with the SM numbers that each process itself reads.

    A process numbers the TPCs as it comes to use them; those that a launch begins to use at once,
    GPC by GPC. It begins anew whenever none of its blocks is on the GPU. Measured: traces
    processes/mps-h200.
    """
    gpc_of = {tpc: gpc for gpc, tpcs in enumerate(spec.gpcs) for tpc in tpcs}
    return tuple(_as_seen(trace, spec, gpc_of) for trace in traces)


def _timed_events(program: Sequence, issue_ns: list[int]) -> Iterable[tuple[Event, int]]:
    """Yields events with times; one without launches has the time of the last launch before it."""
    seen, last_ns = 0, issue_ns[0] if issue_ns else 0
    for event in program:
        yield event, issue_ns[seen] if event.launches else last_ns
        seen += len(event.launches)
        if event.launches:
            last_ns = issue_ns[seen - 1]


def _part(trace: Trace, program: Sequence, owners: list[int], process: int) -> Trace:
    own = [launch for launch, owner in enumerate(owners) if owner == process]
    number = np.full(len(owners) + 1, -1, np.int32)  # the last for "behind no launch"
    number[own] = np.arange(len(own))
    assert trace.waits is not None
    waits = trace.waits[np.isin(trace.waits["launch"], own)].copy()
    waits["launch"] = number[waits["launch"]]
    waits["behind"] = np.where(waits["behind"] < 0, -1, number[waits["behind"]])
    placements = tuple(trace.placements[launch] for launch in own)
    return replace(trace, sequence=program, placements=placements, waits=waits, replay=None)


def _as_seen(trace: Trace, spec: DeviceSpec, gpc_of: dict[int, int]) -> Trace:
    rows = trace.timeline
    starts = np.unique(rows[["start_ns", "launch"]])
    ends = np.sort(rows["end_ns"])
    smids = [np.array(placement.smid) for placement in trace.placements]
    first_sm: dict[int, int] = {}  # as the process numbers them, by TPC
    used = 0  # SMs
    begun = 0
    for start_ns, launch in starts.tolist():
        if np.searchsorted(ends, start_ns, side="right") == begun:
            first_sm, used = {}, 0
        start = trace.placements[launch].start_ns
        assert start is not None
        blocks = np.flatnonzero(start == start_ns)
        begun += len(blocks)
        physical = smids[launch][blocks]
        new = set((physical // spec.sms_per_tpc).tolist()) - first_sm.keys()
        for tpc in sorted(new, key=lambda tpc: (gpc_of.get(tpc, len(gpc_of)), tpc)):
            first_sm[tpc] = used
            used += min(spec.sms_per_tpc, spec.sms - tpc * spec.sms_per_tpc)
        smids[launch][blocks] = [
            first_sm[sm // spec.sms_per_tpc] + sm % spec.sms_per_tpc for sm in physical.tolist()
        ]
    return replace(trace, placements=_renumbered(trace, smids))


def _renumbered(trace: Trace, smids: list[Int32Array]) -> tuple[Any, ...]:
    return tuple(
        replace(placement, smid=smid, final_smid=smid)
        for placement, smid in zip(trace.placements, smids, strict=True)
    )
