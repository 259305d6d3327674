"""Several processes on one GPU, which take turns."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tbsched import _core
from tbsched.errors import shown
from tbsched.hardware.assumed import PROCESSES, needs_of_sequence, rules_of
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import Calls
from tbsched.prediction.mps import run_as_one, with_process_smids
from tbsched.prediction.predict import Run
from tbsched.program.arrays import HoldsArrays, StructuredArray
from tbsched.program.checks import flag, instances, integer, items
from tbsched.program.one_gpu import one_gpu
from tbsched.program.sequence import (
    HostCall,
    HostFunction,
    RecordEvent,
    Sequence,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)
from tbsched.shown import Shown
from tbsched.traces.trace import Trace

MAX_SLOTS = 1000
_TURN = np.dtype([("process", np.int32), ("begin_ns", np.int64), ("end_ns", np.int64)])


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Processes(Shown, HoldsArrays):
    """What several processes do that share a GPU, all on one clock.

    Attributes:
        traces: of each process, in the order given. A block's time includes the turns of others.
        turns: who has the GPU when: a structured array with ``process`` (int32), ``begin_ns`` and
            ``end_ns`` (int64), in order of time. Between turns of two processes the GPU switches.
            Empty under MPS.
        seen: under MPS the traces once more, with the SM numbers that the processes themselves
            read. Else nothing: they read physical ones.

    Example:
        >>> program = tb.Sequence([tb.Launch(132, 1024, 32, duration=3e-3)])
        >>> tb.predict_processes([program, program], "h200").turns["process"].tolist()
        [0, 1, 0, 1]
    """

    traces: tuple[Trace, ...]
    turns: StructuredArray
    seen: tuple[Trace, ...] = ()

    @property
    def assumed_rules(self) -> tuple[str, ...]:
        """Which rules this prediction rests on that are assumed for the GPU, in words.

        Example:
            >>> program = tb.Sequence([tb.Launch(132, 1024, 32, duration=3e-3)])
            >>> tb.predict_processes([program, program], "a100", time_slice=1e-3).assumed_rules[-1]
            'turns of processes'
        """
        needs = {PROCESSES}.union(*(needs_of_sequence(trace.sequence) for trace in self.traces))
        return rules_of(self.traces[0].device.assumed or (), needs)

    @property
    def makespan(self) -> float:
        """Seconds from the first start of a block to the last end.

        Example:
            >>> program = tb.Sequence([tb.Launch(132, 1024, 32, duration=3e-3)])
            >>> round(1e3 * tb.predict_processes([program] * 2, "h200").makespan, 1)
            6.5
        """
        times = [trace.timeline for trace in self.traces if len(trace)]
        if not times:
            return 0.0
        first = min(int(rows["start_ns"].min()) for rows in times)
        return (max(int(rows["end_ns"].max()) for rows in times) - first) / 1e9


def predict_processes(
    programs: Iterable[Sequence],
    device: str | os.PathLike[str] | DeviceSpec,
    policy: str | None = None,
    initial_state: InitialState | None = None,
    *,
    launch_interval: float = 0.0,
    issue_times: Iterable[Iterable[float]] | None = None,
    host: float | Iterable[float | Iterable[float]] | None = None,
    last: int | None = None,
    mps: bool = False,
    time_slice: float | Iterable[float] | None = None,
    runlist: Iterable[int] | None = None,
) -> Processes:
    """Predicts when each of several processes has the GPU, and when their blocks run.

    Without MPS they never share the SMs: they take turns. Blocks that are stopped at the end of a
    turn stay on their SM. Their hosts go on meanwhile, and so do copies between host and GPU. Under
    MPS their launches are placed as if one process had made them.

    Args:
        programs: a timed sequence for each process. Where several wait, turns go round in this
            order. On an H200 that is the order in which the processes made their contexts. Nobody
            knows how host functions and values in memory go on between turns: they are refused.
        device, policy, initial_state: as for :func:`predict`; the device must say how long a slice
            is (``DeviceSpec.time_slice_ns``), or ``time_slice`` must.
        launch_interval: seconds from one launch call of a host to the next, for all processes.
        issue_times: for each process its times of issue in seconds, all on one clock.
        host: for each process what :func:`predict` takes: a number of seconds, or one per event;
            one number is for all processes. Only one of ``launch_interval``, ``issue_times`` and
            ``host`` can be given.
        last: the number of the process that had the GPU before. To any other one the GPU switches
            first, which takes 0.14 ms. None: nobody knows, and it does not.
        mps: they are clients of one MPS server, each with all of the GPU. Nobody knows what copies,
            memsets and waiting hosts do then: they are refused, and so is ``host``.
        time_slice: seconds of a slice, for all processes or for each, in place of the device's.
        runlist: the process of each slot of a round, such as ``[0, 1, 0, 2]``: a process of higher
            priority has several. A slot is skipped while its process has no work. None: each has
            one, in their order. What a switch costs is the device's own; where nobody measured
            that, as on ``xavier``, it takes no time.

    Returns:
        The traces and the turns. The traces do not know what their SMs held.

    Raises:
        TypeError, ValueError: as :func:`predict`; no program; one that is not timed; a device
            without slices, and no ``time_slice``; a time_slice out of 1 ns to 1 s, or under MPS; a
            runlist without one of the processes, or under MPS; issue_times or host that are not one
            row per process; under MPS, what is not known there.

    Example:
        >>> long = tb.Sequence([tb.Launch(132, 1024, 32, duration=20e-3)])
        >>> visit = tb.Sequence([tb.Launch(8, 64, 32, duration=1e-4)])
        >>> found = tb.predict_processes([long, visit], "h200", issue_times=[[0.0], [5e-3]])
        >>> found.turns["process"].tolist()
        [0, 1, 0]
        >>> f"{found.traces[1][0].start_ns[0] / 1e6:.2f} ms"  # 7 us to the GPU, and the switch
        '5.18 ms'
    """
    known = instances("predict_processes", "programs", programs, Sequence)
    if not known:
        raise ValueError("predict_processes: programs: there are none")
    spec = find_device(device)
    if flag("predict_processes", "mps", mps):
        spec = replace(spec, hardware_queues=spec.hardware_queues * len(known))  # each has its own
    if last is not None:
        last = integer("predict_processes", "last", last, 0, len(known) - 1)
    run = Run(spec, policy, initial_state, launch_interval, warp_slots=False)
    sequences, calls = _checked(run, known, issue_times, host)
    if mps:
        if time_slice is not None or runlist is not None:
            raise ValueError("mps: there are no turns, so neither time_slice nor runlist")
        for number, program in enumerate(known):
            _check_under_mps(number, program, host)
        traces = run_as_one(known, calls, run)
        return Processes(traces, np.empty(0, _TURN), with_process_smids(traces, spec))
    slices = _slices_ns(time_slice, len(known), spec)
    slots = _slots(runlist, len(known))
    timelines, process, begin_ns, end_ns = _core.predict_processes(
        run.model, sequences, run.state, calls, last, slots, slices
    )
    turns = np.empty(len(process), _TURN)
    turns["process"], turns["begin_ns"], turns["end_ns"] = process, begin_ns, end_ns
    found = zip(known, timelines, strict=True)
    return Processes(tuple([run.timed(program, row, None) for program, row in found]), turns)


def _slices_ns(
    given: float | Iterable[float] | None, processes: int, spec: DeviceSpec
) -> list[int]:
    """Returns the nanoseconds of each process's slice."""
    if given is None:
        if spec.time_slice_ns == 0:
            raise ValueError(
                f"time_slice_ns: {spec.name} does not say for how long a process keeps the GPU; "
                "time_slice can say it"
            )
        return [spec.time_slice_ns] * processes
    if isinstance(given, int | float) and not isinstance(given, bool):
        given = [given] * processes
    rows = _rows("time_slice", given, processes)
    for row in rows:
        if isinstance(row, bool) or not isinstance(row, int | float):
            raise TypeError(f"time_slice: seconds are needed, got {shown(row)}")
        if not 1e-9 <= row <= 1:
            raise ValueError(f"time_slice: {row} s is outside 1e-09..1")
    return [round(1e9 * row) for row in rows]


def _slots(given: Iterable[int] | None, processes: int) -> list[int]:
    """Returns the process of each slot of a round."""
    if given is None:
        return [*range(processes)]
    slots = [
        integer("predict_processes", "runlist", slot, 0, processes - 1)
        for slot in items("predict_processes", "runlist", given)
    ]
    if len(slots) > MAX_SLOTS:
        raise ValueError(f"runlist: {len(slots)} slots are more than {MAX_SLOTS}")
    missing = sorted({*range(processes)} - {*slots})
    if missing:
        raise ValueError(f"runlist: process {missing[0]} has no slot, and would wait for ever")
    return slots


def _checked(
    run: Run,
    programs: tuple[Sequence, ...],
    issue_times: Iterable[Iterable[float]] | None,
    host: float | Iterable[float | Iterable[float]] | None,
) -> tuple[list[_core.Sequence], list[Calls]]:
    """Returns the core's value of each program and the calls of its hosts, all checked."""
    times = _rows("issue_times", issue_times, len(programs))
    one_for_all = isinstance(host, int | float)
    gaps = [host] * len(programs) if one_for_all else _rows("host", host, len(programs))
    sequences, calls = [], []
    for number, (program, *host_times) in enumerate(zip(programs, times, gaps, strict=True)):
        if not isinstance(program, Sequence):
            raise TypeError(
                f"programs: process {number}: a Sequence is needed, got {shown(program)}"
            )
        if not program.timed:
            raise ValueError(f"programs: process {number}: its launches need durations")
        one_gpu("predict_processes", program)
        for event in (*program, *program.transfers):
            is_node = isinstance(event, RecordEvent | WaitEvent) and event.stream is None
            is_timed = isinstance(event, RecordEvent) and event.timing
            if is_node or is_timed or isinstance(event, HostFunction | WriteValue | WaitValue):
                raise ValueError(
                    f"programs: process {number}: {shown(event)}: nobody knows how it goes on "
                    "while another process has the GPU; leave it out"
                )
        try:
            sequences.append(run.events(program))
            calls.append(run.calls(program, *host_times))
        except (TypeError, ValueError) as error:
            raise type(error)(f"process {number}: {error}") from None
    return sequences, calls


def _rows(name: str, given: Any, processes: int) -> list[Any]:
    """Returns an argument's value for each process; None for each if the argument is None.
    ``name``: for messages."""
    if given is None:
        return [None] * processes
    rows = list(items("predict_processes", name, given))
    if len(rows) != processes:
        raise ValueError(
            f"{name}: a row for each of {processes} processes is needed, got {len(rows)}"
        )
    return rows


def _check_under_mps(number: int, program: Sequence, host: object) -> None:
    """Checks that process ``number`` has no event whose effect under MPS is not measured."""
    waits = any(isinstance(event, Synchronize | HostCall) for event in program)
    if program.transfers or waits or host is not None:
        raise ValueError(
            f"programs: process {number}: under MPS nobody knows how a Copy, Memset, Synchronize, "
            "HostCall or host= of one process waits for others; leave them out"
        )
