"""Several processes on one GPU under MPS: one scheduler, and SM numbers of their own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import Calls, concatenated, host_of
from tbsched.prediction.predict import Run
from tbsched.program.arrays import Int32Array
from tbsched.program.events.streams import MAX_HOSTS
from tbsched.program.sequence import LEGACY_STREAM, Event, Launch, Sequence
from tbsched.traces.trace import Trace

# Fields of events that name a stream or a CUDA event. These names are private to a process.
_PRIVATE_FIELDS = ("stream", "event", "completion_event")


def run_as_one(
    programs: tuple[Sequence, ...], calls: Iterable[Calls], run: Run
) -> tuple[Trace, ...]:
    """Predicts processes that share the SMs as one process; returns a trace each, physical SMIDs.

    The one process has the events of all programs, one program after the other, and a host thread
    for each host thread of theirs.

    Raises:
        TypeError, ValueError: as :func:`tbsched.predict`; a launch in the legacy stream; more host
            threads than a sequence has.
    """
    names: dict[tuple[object, ...], int] = {}
    threads: dict[tuple[int, int], int] = {}

    def renamed(event: Event, process: int) -> Event:
        """Returns an event with streams, CUDA events and a host that no other process has."""
        changed: dict[str, Any] = {}
        if isinstance(event, Launch) and event.first_use and event.name is not None:
            changed["name"] = f"{event.name} of process {process}"  # each process loads its kernels
        for field in _PRIVATE_FIELDS:
            name = getattr(event, field, None)
            if name == LEGACY_STREAM:
                raise ValueError(
                    f"process {process}: stream: the legacy one is not known under MPS"
                )
            if name is not None:
                kind = "stream" if field == "stream" else "event"
                changed[field] = names.setdefault((kind, process, name), len(names))
        changed["host"] = threads.setdefault((process, host_of(event)), len(threads))
        if len(threads) > MAX_HOSTS:
            raise ValueError(
                f"programs: under MPS all processes together have at most {MAX_HOSTS} host threads"
            )
        return replace(event, **changed)

    merged = Sequence(
        [renamed(event, process) for process, program in enumerate(programs) for event in program]
    )
    trace = run.predicted(
        merged, run.events(merged), concatenated(zip(programs, calls, strict=True))
    )
    first_launches = itertools.accumulate((len(one.launches) for one in programs), initial=0)
    return tuple(
        _part(trace, program, first)
        for program, first in zip(programs, first_launches, strict=False)
    )


def with_process_smids(traces: tuple[Trace, ...], spec: DeviceSpec) -> tuple[Trace, ...]:
    """Returns the traces with the SMIDs that each process reads itself under MPS.

    A process numbers the TPCs in the order of their first use; TPCs that one launch begins to use
    at the same time are numbered GPC by GPC. The numbers begin anew whenever no block of the
    process is on the GPU. Measured: traces processes/mps-h200.
    """
    gpc_of = {tpc: gpc for gpc, tpcs in enumerate(spec.gpcs) for tpc in tpcs}
    return tuple(_with_process_smids(trace, spec, gpc_of) for trace in traces)


def _part(trace: Trace, program: Sequence, first: int) -> Trace:
    """Returns the part of a common trace that is one program's. ``first``: the number that its
    first launch has there."""
    count = len(program.launches)
    assert trace.waits is not None
    launch = trace.waits["launch"] - first
    waits = trace.waits[(launch >= 0) & (launch < count)].copy()
    waits["launch"] -= first
    behind = waits["behind"] - first
    waits["behind"] = np.where((behind >= 0) & (behind < count), behind, -1)
    placements = trace.placements[first : first + count]
    return replace(
        trace, sequence=program, placements=placements, waits=waits, replay=None, wait_limiters=None
    )


def _with_process_smids(trace: Trace, spec: DeviceSpec, gpc_of: dict[int, int]) -> Trace:
    """Returns a trace with the SMIDs that its process reads, from the GPC of each TPC."""
    rows = trace.timeline
    starts = np.unique(rows[["start_ns", "launch"]])
    ends = np.sort(rows["end_ns"])
    smids = [np.array(placement.smid) for placement in trace.placements]
    first_sm: dict[int, int] = {}  # the SMID that the process reads on the first SM of each TPC
    used_sms = begun_blocks = 0
    for start_ns, launch in starts.tolist():
        if np.searchsorted(ends, start_ns, side="right") == begun_blocks:
            first_sm, used_sms = {}, 0
        start = trace.placements[launch].start_ns
        assert start is not None
        blocks = np.flatnonzero(start == start_ns)
        begun_blocks += len(blocks)
        physical = smids[launch][blocks]
        new = set((physical // spec.sms_per_tpc).tolist()) - first_sm.keys()
        for tpc in sorted(new, key=lambda tpc: (gpc_of.get(tpc, len(gpc_of)), tpc)):
            first_sm[tpc] = used_sms
            used_sms += min(spec.sms_per_tpc, spec.sms - tpc * spec.sms_per_tpc)
        smids[launch][blocks] = [
            first_sm[sm // spec.sms_per_tpc] + sm % spec.sms_per_tpc for sm in physical.tolist()
        ]
    return replace(trace, placements=_renumbered(trace, smids))


def _renumbered(trace: Trace, smids: list[Int32Array]) -> tuple[Any, ...]:
    """Returns the placements with other SMIDs, given for each launch."""
    return tuple(
        replace(placement, smid=smid, final_smid=smid)
        for placement, smid in zip(trace.placements, smids, strict=True)
    )
