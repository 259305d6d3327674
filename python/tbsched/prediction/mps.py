"""Several processes on one GPU under MPS: one scheduler, and SM numbers of their own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import Calls, host_of, joined
from tbsched.prediction.predict import Run
from tbsched.program.arrays import Int32Array
from tbsched.program.events.streams import MAX_HOSTS
from tbsched.program.sequence import LEGACY_STREAM, Event, Launch, Sequence
from tbsched.traces.trace import Trace

# Fields that name a stream or a CUDA event, which are private to a process.
_NAMES = ("stream", "event", "completion_event")


def run_as_one(
    programs: tuple[Sequence, ...], calls: Iterable[Calls], run: Run
) -> tuple[Trace, ...]:
    """Returns the traces of processes that share the SMs, with physical SM numbers.

    Their programs are one after the other in the sequence of one process, in which each host thread
    of theirs is a thread of its own.

    Raises:
        TypeError, ValueError: as :func:`tbsched.predict`; a launch in the legacy stream; more host
            threads than a sequence has.
    """
    names: dict[tuple[object, ...], int] = {}
    threads: dict[tuple[int, int], int] = {}

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
        own["host"] = threads.setdefault((number, host_of(event)), len(threads))
        if len(threads) > MAX_HOSTS:
            raise ValueError(
                f"programs: under MPS all processes together have at most {MAX_HOSTS} host threads"
            )
        return replace(event, **own)

    merged = Sequence(
        [renamed(event, number) for number, program in enumerate(programs) for event in program]
    )
    trace = run.predicted(merged, run.events(merged), joined(zip(programs, calls, strict=True)))
    ends = [*itertools.accumulate(len(program.launches) for program in programs)]
    firsts = [0, *ends]
    return tuple(
        _part(trace, program, first) for program, first in zip(programs, firsts, strict=False)
    )


def as_seen(traces: tuple[Trace, ...], spec: DeviceSpec) -> tuple[Trace, ...]:
    """Returns the traces with the SM numbers that each process itself reads.

    A process numbers the TPCs as it comes to use them; those that a launch begins to use at once,
    GPC by GPC. It begins anew whenever none of its blocks is on the GPU. Measured: traces
    processes/mps-h200.
    """
    gpc_of = {tpc: gpc for gpc, tpcs in enumerate(spec.gpcs) for tpc in tpcs}
    return tuple(_as_seen(trace, spec, gpc_of) for trace in traces)


def _part(trace: Trace, program: Sequence, first: int) -> Trace:
    """Returns the part of a process; its launches are those from ``first`` on."""
    count = len(program.launches)
    assert trace.waits is not None
    own = trace.waits["launch"] - first
    waits = trace.waits[(own >= 0) & (own < count)].copy()
    waits["launch"] -= first
    behind = waits["behind"] - first
    waits["behind"] = np.where((behind >= 0) & (behind < count), behind, -1)
    placements = trace.placements[first : first + count]
    return replace(
        trace, sequence=program, placements=placements, waits=waits, replay=None, wait_limiters=None
    )


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
