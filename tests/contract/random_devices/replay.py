"""Predictions, held and timed, played back block by block on the plain GPU of the checker."""

from __future__ import annotations

import heapq
import itertools
from typing import NamedTuple

import numpy as np

from contract.random_devices.checker import Gpu, Resident, as_seen, check_clusters
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import LEGACY_STREAM, Launch, RecordEvent, Release, Sequence
from tbsched.traces.trace import Trace

# What a launch of a timed program waits for before it is in line for room.
BEFORE_THE_LINE = ("stream", "event", "legacy_stream", "hardware_queue", "grids")
BY_PRIORITY = {"leftover": True, "fifo": False, "pass_by": True, "one_line": True}


def rank(launch: Launch, spec: DeviceSpec) -> int:
    clamped = max(min(launch.priority, 0), 1 - spec.priority_levels)
    return clamped if BY_PRIORITY[spec.launch_order] else 0


# -- held -----------------------------------------------------------------------------------------


class Kernel:
    """A launch of a held sequence on its way."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.sms: list[int] = []
        self.held: list[Resident] = []
        self.released = False

    @property
    def over(self) -> bool:
        return self.released and len(self.sms) == self.launch.blocks

    def leave(self, gpu: Gpu) -> None:
        for block in self.held:
            gpu.leave(block)
        self.held = []

    def place(self, gpu: Gpu, sms: list[int]) -> None:
        """Blocks of a released launch leave in waves, whenever no more of them fit."""
        size = self.launch.cluster
        for first in range(0, len(sms), size):
            own = sms[first : first + size]
            done = place_all(gpu, self.launch, own)
            if not done and self.released:
                self.leave(gpu)
                done = place_all(gpu, self.launch, own)
            assert done, f"{self.launch}: no room on SMs {own}"
            self.held += done
        self.sms += sms


def place_all(gpu: Gpu, launch: Launch, sms: list[int]) -> list[Resident]:
    """The blocks on those SMs; none, and nothing has changed, if one has no room."""
    done: list[Resident] = []
    for sm in sms:
        block = gpu.place(launch, sm)
        if block is None:
            for other in done:
                gpu.leave(other)
            return []
        done.append(block)
    return done


def check_held(sequence: Sequence, spec: DeviceSpec, policy: str, state: InitialState) -> None:
    """Every event of the sequence, and then the release of all that is held."""
    left = set(range(len(sequence.launches)))
    left -= {event.launch for event in sequence if isinstance(event, Release)}
    whole = Sequence([*sequence, *map(Release, sorted(left))])
    gpu = Gpu(as_seen(spec, policy))
    kernels: list[Kernel] = []
    for count, event in enumerate(whole, 1):
        if isinstance(event, Release):
            kernels[event.launch].released = True
            kernels[event.launch].leave(gpu)
        else:
            assert isinstance(event, Launch)
            kernels.append(Kernel(event))
        play(predict(whole[:count], spec, policy, state), kernels, gpu)
    assert all(kernel.over for kernel in kernels)
    for kernel in kernels:
        check_clusters(kernel.launch, kernel.sms, spec)


def play(trace: Trace, kernels: list[Kernel], gpu: Gpu) -> None:
    """What an event let in: the trace is of all events until then."""
    fresh = []
    for number, (kernel, placement) in enumerate(zip(kernels, trace, strict=True)):
        assert placement.final_smid is not None
        placed = placement.final_smid[placement.final_smid >= 0].tolist()
        if len(placed) > len(kernel.sms):
            key = (not kernel.released, rank(kernel.launch, gpu.spec))
            fresh.append((key, number, placed[len(kernel.sms) :]))
    # What leaves as it comes can let in others, ahead in line; it takes nothing from them.
    gpu.in_order = gpu.in_order and not any(kernels[number].released for _, number, _ in fresh)
    for _, number, sms in sorted(fresh):
        kernels[number].place(gpu, sms)
        if kernels[number].released:
            kernels[number].leave(gpu)
    for _, number, _ in fresh:
        stream = kernels[number].launch.stream
        before = [k for k in kernels[:number] if k.launch.stream == stream is not None]
        assert all(kernel.over for kernel in before)


# -- timed ----------------------------------------------------------------------------------------


class Run(NamedTuple):
    """A launch of a timed program; ``key`` is its place in line."""

    launch: Launch
    reaches_ns: int
    admitted_ns: int
    key: tuple[int, int, int, int]
    sms: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray


def check_timed(
    program: Sequence, spec: DeviceSpec, policy: str, state: InitialState, interval_ns: int
) -> None:
    trace = predict(program, spec, policy, state, launch_interval=interval_ns * 1e-9)
    runs = runs_of(trace, spec, interval_ns)
    for run in runs:
        assert (run.sms >= 0).all()
        assert (run.start_ns >= run.reaches_ns).all()
        durations = np.broadcast_to(run.launch.duration_ns(), run.sms.shape)
        np.testing.assert_array_equal(run.end_ns - run.start_ns, durations)
        check_clusters(run.launch, run.sms.tolist(), spec)
        starts = run.start_ns.reshape(-1, run.launch.cluster)
        assert (starts == starts[:, :1]).all()
    check_waits(trace, runs)
    check_grids(runs, spec)
    check_order(program, runs, spec)
    check_room(runs, Gpu(as_seen(spec, policy)))


def runs_of(trace: Trace, spec: DeviceSpec, interval_ns: int) -> list[Run]:
    assert trace.waits is not None
    found = []
    for number, (launch, placement) in enumerate(zip(trace.sequence.launches, trace, strict=True)):
        own = trace.waits[trace.waits["launch"] == number]
        early = own[np.isin(own["cause"], BEFORE_THE_LINE)]
        reaches = number * interval_ns + spec.launch_latency_ns
        admitted = int(early["end_ns"].max()) if len(early) else reaches
        key = (rank(launch, spec), admitted, rank(launch, spec), number)
        assert placement.start_ns is not None
        assert placement.end_ns is not None
        times = placement.start_ns, placement.end_ns
        found.append(Run(launch, reaches, admitted, key, placement.smid, *times))
    return found


def check_waits(trace: Trace, runs: list[Run]) -> None:
    """From when it reaches the GPU until its last block starts, a launch always waits."""
    assert trace.waits is not None
    for number, run in enumerate(runs):
        own = trace.waits[trace.waits["launch"] == number]
        assert (own["begin_ns"] < own["end_ns"]).all()
        edges = [run.reaches_ns, *own["end_ns"].tolist()]
        assert own["begin_ns"].tolist() == edges[:-1]
        assert edges[-1] == run.start_ns.max()


def check_grids(runs: list[Run], spec: DeviceSpec) -> None:
    """No more launches are in line or run than there is room for."""
    for run in runs:
        there = [
            other for other in runs
            if other.admitted_ns <= run.admitted_ns
            and other.end_ns.max() + spec.exit_latency_ns > run.admitted_ns
        ]  # fmt: skip
        assert len(there) <= spec.resident_grids


def check_order(program: Sequence, runs: list[Run], spec: DeviceSpec) -> None:
    """A launch starts after all that its stream, its events and the legacy stream wait for."""
    after: list[list[int]] = []  # of each event of the program, the launches that it comes after
    of_stream: dict[object, list[int]] = {}
    of_event: dict[int, list[int]] = {}
    everything: list[int] = []
    legacy: list[int] = []
    launches = iter(range(len(runs)))
    for position, event in enumerate(program):
        stream = ("own", position) if event.stream is None else event.stream
        before = of_stream.get(stream, [])
        before = [*before, *(everything if stream == LEGACY_STREAM else legacy)]
        if isinstance(event, Launch):
            number = next(launches)
            over = max((int(runs[k].end_ns.max()) for k in before), default=0)
            over += (spec.exit_latency_ns + spec.completion_latency_ns) * bool(before)
            assert runs[number].start_ns.min() >= over
            before = [*before, number]
        elif isinstance(event, RecordEvent):
            of_event[event.event] = before
        elif event.event in of_event:
            before = [*before, *of_event[event.event]]
        else:  # a wait for an event that nobody has recorded is nothing, in the legacy stream, too
            after.append(before)
            continue
        after.append(before)
        of_stream[stream] = before
        everything = [*everything, *before]
        if stream == LEGACY_STREAM:
            legacy = before


def check_room(runs: list[Run], gpu: Gpu) -> None:
    """Every block in the order in which blocks come and leave."""
    gpu.in_order = all(run.launch.duration_ns().min() > 0 for run in runs)
    comings = [
        (int(run.start_ns[first]), run.key, first, run)
        for run in runs
        for first in range(0, run.launch.blocks, run.launch.cluster)
        if gpu.in_order or run.end_ns[first] > run.start_ns[first]
    ]
    comings.sort(key=lambda row: row[:3])
    leaving: list[tuple[int, int, Resident]] = []  # a heap, by time
    numbers = itertools.count()
    for now, _, first, run in comings:
        while leaving and leaving[0][0] <= now:
            gpu.leave(heapq.heappop(leaving)[2])
        own = slice(first, first + run.launch.cluster)
        done = place_all(gpu, run.launch, run.sms[own].tolist())
        assert done, f"{run.launch}: no room on SMs {run.sms[own]} at {now} ns"
        ends = run.end_ns[own] + gpu.spec.exit_latency_ns
        for end, block in zip(ends.tolist(), done, strict=True):
            heapq.heappush(leaving, (end, next(numbers), block))
