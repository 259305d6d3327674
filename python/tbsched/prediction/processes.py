"""Several processes on one GPU, which take turns."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from tbsched import _core
from tbsched.errors import shown
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import launch_times
from tbsched.prediction.mps import as_seen, run_as_one
from tbsched.prediction.predict import Run
from tbsched.program.arrays import HoldsArrays, StructuredArray
from tbsched.program.checks import flag, items
from tbsched.program.sequence import Sequence, Synchronize
from tbsched.traces.trace import Trace

_TURN = np.dtype([("process", np.int32), ("begin_ns", np.int64), ("end_ns", np.int64)])


@dataclass(frozen=True, eq=False, slots=True)
class Processes(HoldsArrays):
    """What several processes do that share a GPU, all on one clock.

    Attributes:
        traces: of each process, in the order given. A block's time includes the turns of others.
        turns: who has the GPU when: a structured array with ``process`` (int32), ``begin_ns`` and
            ``end_ns`` (int64), in order of time. Between two turns the GPU switches. Empty under
            MPS.
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
    def makespan(self) -> float:
        """Seconds from the first start of a block to the last end.

        Example:
            >>> program = tb.Sequence([tb.Launch(132, 1024, 32, duration=3e-3)])
            >>> round(1e3 * tb.predict_processes([program] * 2, "h200").makespan, 1)
            6.5
        """
        times = [trace.timeline for trace in self.traces]
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
    mps: bool = False,
) -> Processes:
    """Predicts when each of several processes has the GPU, and when their blocks run.

    Without MPS they never share the SMs: they take turns. Blocks that are stopped at the end of a
    turn stay on their SM. Under MPS their launches are placed as if one process had made them.

    Args:
        programs: a timed sequence for each process. Where several wait, turns go round in this
            order. On an H200 that is the order in which the processes made their contexts.
        device, policy, initial_state: as for :func:`predict`; the device must say how long a slice
            is (``DeviceSpec.time_slice_ns``).
        launch_interval: seconds from one launch call of a host to the next, for all processes.
        issue_times: for each process its times of issue in seconds, all on one clock. Not together
            with ``launch_interval``.
        mps: they are clients of one MPS server, each with all of the GPU.

    Returns:
        The traces and the turns. The traces do not know what their SMs held.

    Raises:
        TypeError, ValueError: as :func:`predict`; no program; one that is not timed; a device
            without slices; issue_times that are not one row per process.

    Example:
        >>> long = tb.Sequence([tb.Launch(132, 1024, 32, duration=20e-3)])
        >>> visit = tb.Sequence([tb.Launch(8, 64, 32, duration=1e-4)])
        >>> found = tb.predict_processes([long, visit], "h200", issue_times=[[0.0], [5e-3]])
        >>> found.turns["process"].tolist()
        [0, 1, 0]
        >>> f"{found.traces[1][0].start_ns[0] / 1e6:.2f} ms"  # 7 us to the GPU, and the switch
        '5.18 ms'
    """
    known = tuple(items("predict_processes", "programs", programs))
    if not known:
        raise ValueError("predict_processes: programs: there are none")
    spec = find_device(device)
    if flag("predict_processes", "mps", mps):
        spec = replace(spec, hardware_queues=spec.hardware_queues * len(known))  # each has its own
    run = Run(spec, policy, initial_state, launch_interval, warp_slots=False)
    sequences, issued = _checked(run, known, issue_times)
    if mps:
        traces = run_as_one(known, issued, run)
        return Processes(traces, np.empty(0, _TURN), as_seen(traces, spec))
    if spec.time_slice_ns == 0:
        raise ValueError(
            f"time_slice_ns: {spec.name} does not say for how long a process keeps the GPU"
        )
    timelines, process, begin_ns, end_ns = _core.predict_processes(
        run.model, sequences, run.state, issued
    )
    turns = np.empty(len(process), _TURN)
    turns["process"], turns["begin_ns"], turns["end_ns"] = process, begin_ns, end_ns
    rows = zip(known, timelines, strict=True)
    return Processes(tuple([run.timed(program, row, None) for program, row in rows]), turns)


def _checked(
    run: Run, programs: tuple[Sequence, ...], issue_times: Iterable[Iterable[float]] | None
) -> tuple[list[_core.Sequence], list[list[int]]]:
    """The programs for the core, and when their launches are issued."""
    rows: list[Iterable[float] | None] = [None] * len(programs)
    if issue_times is not None:
        rows = list(items("predict_processes", "issue_times", issue_times))
        if len(rows) != len(programs):
            raise ValueError(
                f"issue_times: a row for each of {len(programs)} processes is needed, "
                f"got {len(rows)}"
            )
    sequences, issued = [], []
    for number, (program, times) in enumerate(zip(programs, rows, strict=True)):
        if not isinstance(program, Sequence):
            raise TypeError(
                f"programs: process {number}: a Sequence is needed, got {shown(program)}"
            )
        if not program.timed:
            raise ValueError(f"programs: process {number}: its launches need durations")
        if program.transfers or any(isinstance(event, Synchronize) for event in program):
            raise ValueError(
                f"programs: process {number}: nobody knows how a Copy, Memset or Synchronize of "
                "one process waits for the turns of others; leave them out"
            )
        try:
            sequences.append(run.events(program))
            issued.append(launch_times(program, run.calls(program, times)))
        except (TypeError, ValueError) as error:
            raise type(error)(f"process {number}: {error}") from None
    return sequences, issued
