"""Runs a sequence on a real GPU and says which SM each block was on."""

from __future__ import annotations

import os
import threading
import warnings
from collections import defaultdict, deque
from collections.abc import Generator, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tbsched.errors import DeadlineExceeded, UnstableMeasurement, shown
from tbsched.launcher.query import check_index, import_launcher
from tbsched.launcher.several import check_several, observe_several
from tbsched.program.arrays import Int32Array
from tbsched.program.event_table import EventTable
from tbsched.program.one_gpu import one_gpu
from tbsched.program.sequence import HostCall, HostFunction, Launch, Sequence
from tbsched.traces.annotations import called, issued
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.trace import Trace

if TYPE_CHECKING:
    from tbsched import _launcher

SHORTEST_DEADLINE = 10.0  # seconds
LONGEST_DEADLINE = 3600.0
SETTLE = 0.003  # seconds
# Sequences in flight on the GPU before results are read, so that it never waits for Python.
AHEAD = 32
TABLES_AHEAD = 2
Outcome: TypeAlias = Trace | UnstableMeasurement | DeadlineExceeded
Groups: TypeAlias = tuple[tuple[int, ...], ...]  # launches whose blocks wait for each other
Smids: TypeAlias = Int32Array | UnstableMeasurement | DeadlineExceeded
# Two sequences at once on one GPU would measure each other.
_locks: defaultdict[int, threading.RLock] = defaultdict(threading.RLock)
# A GPU cannot be used in a process forked after it was opened, hence the process in the key.
_opened: dict[tuple[int, int], Gpu] = {}


@dataclass(frozen=True, slots=True)
class Asked:
    """A sequence for the GPU, with groups and times.

    Attributes:
        sequence: of launches.
        groups: the launches of each group whose blocks meet.
        issue_times: when each launch is called, in seconds; empty: as fast as the host can.
    """

    sequence: Sequence
    groups: Groups = ()
    issue_times: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _check(self.sequence, repeats=1)
        one_gpu("observe", self.sequence)


class Gpu:
    """A GPU kept open for many sequences: streams, memory and loaded kernels are reused.

    Usable as a context manager, and as the oracle of :func:`tbsched.fuzz`.

    Args:
        index: number of the GPU as CUDA counts them.

    Attributes:
        info: name, number of SMs, compute capability, driver, CUDA version, UUID and
            ``max_connections``: CUDA_DEVICE_MAX_CONNECTIONS.
        warnings: what may disturb observations (MIG, MPS, other processes), in words; each is
            also issued as a ``UserWarning`` when the GPU is opened.
        mps: whether an MPS daemon seems to run, so that SM numbers are not physical.

    Raises:
        NoGpuError: no usable GPU, with what was looked for.
        CudaError: the driver refused.

    The environment variable ``TBSCHED_LIBCUDA`` names a CUDA driver library at an unusual place,
    ``TBSCHED_LIBNVML`` an NVML library. ``CUDA_MODULE_LOADING`` and
    ``CUDA_DEVICE_MAX_CONNECTIONS`` are set to ``EAGER`` and ``32`` unless they are set already;
    that has no effect if something else in the process used CUDA before. The latter is the number
    of hardware queues, read when the process makes its first CUDA context: other numbers need
    other processes.

    Example:
        >>> from tbsched.launcher.observe import Gpu
        >>> with Gpu(0) as gpu:  # doctest: +SKIP
        ...     print(tb.compare(tb.predict(sequence, "h200"), gpu.observe(sequence)))
    """

    def __init__(self, index: int = 0) -> None:
        launcher = import_launcher()
        check_index(index)
        self._gpu: _launcher.Gpu = launcher.Gpu(index)
        self._lock = _locks[index]
        info = self._gpu.info()
        details = {key: value for key, value in info.items() if key not in ("name", "sms")}
        self.info = DeviceInfo(info["name"], info["sms"], details)
        self.mps: bool = self._gpu.mps()
        self.warnings: tuple[str, ...] = tuple(self._gpu.warnings())
        for text in self.warnings:
            warnings.warn(f"GPU {index} ({self.info.name}): {text}", UserWarning, stacklevel=2)

    def observe(
        self,
        seq: Sequence,
        *,
        repeats: int = 1,
        warp_slots: bool = False,
        deadline: float | None = None,
        settle: float = SETTLE,
    ) -> Trace:
        """See :func:`observe`."""
        _check(seq, repeats)
        with self._lock:
            traces = [
                self.run(Asked(seq), warp_slots=warp_slots, deadline=deadline, settle=settle)[0]
                for _ in range(repeats)
            ]
        for index, trace in enumerate(traces[1:], 1):
            _same_occupancy(traces[0], trace, index)
        return traces[0]

    def observe_many(
        self,
        sequences: Iterable[Sequence],
        *,
        warp_slots: bool = False,
        deadline: float | None = None,
        settle: float = SETTLE,
    ) -> Generator[Outcome, None, None]:
        """See :func:`observe_many`."""
        requests = (Asked(seq) for seq in sequences)
        with closing(
            self.run_many(requests, warp_slots=warp_slots, deadline=deadline, settle=settle)
        ) as outcomes:
            for _, outcome, _ in outcomes:
                yield outcome

    def run_many(
        self,
        requests: Iterable[Asked],
        *,
        warp_slots: bool,
        deadline: float | None,
        settle: float,
    ) -> Generator[tuple[Asked, Outcome, tuple[bool, ...]], None, None]:
        """Runs like :func:`observe_many`, with groups of launches whose blocks meet.

        Yields:
            The request, its outcome, and which of the groups have met.
        """
        batch = self._gpu.batch(warp_slots=warp_slots, settle=settle)
        running: deque[Asked] = deque()
        try:
            for request in requests:
                _check(request.sequence, repeats=1)
                batch.add(
                    request.sequence.events,
                    deadline=self._deadline(request.sequence, deadline),
                    groups=request.groups,
                    issue_times=request.issue_times,
                )
                running.append(request)
                if len(running) > AHEAD:
                    first = running.popleft()
                    yield first, *self._outcome(first.sequence, batch)
            while running:
                first = running.popleft()
                yield first, *self._outcome(first.sequence, batch)
        finally:
            batch.close()

    def observe_tables(
        self,
        tables: Iterable[EventTable],
        *,
        deadline: float | None = None,
        settle: float = SETTLE,
        any_state: bool = False,
    ) -> Generator[list[Smids], None, None]:
        """Runs like :func:`observe_many`, for tables of events.

        Args:
            tables: taken at most three ahead of what has been yielded.
            deadline, settle: as for :func:`observe_many`.
            any_state: lets the GPU start from any of its latent states, not from the usual one,
                which takes less time: nobody cares in what order blocks leave.

        Yields:
            For each table a list: for each sequence the SMs of all blocks before the next event,
            int32 (blocks,), launch after launch; or the error that it ended in.

        Raises:
            as :func:`observe_many`.
        """
        deadline = SHORTEST_DEADLINE if deadline is None else deadline
        batch = self._gpu.batch(warp_slots=False, settle=settle)
        running: deque[int] = deque()
        try:
            for table in tables:
                batch.add_table(
                    table.cells, table.bounds, table.partitions,
                    deadline=deadline, any_state=any_state,
                )  # fmt: skip
                running.append(len(table))
                if len(running) > TABLES_AHEAD:
                    yield batch.next_smids(running.popleft())
            while running:
                yield batch.next_smids(running.popleft())
        finally:
            batch.close()

    def _outcome(self, seq: Sequence, batch: _launcher.Batch) -> tuple[Outcome, tuple[bool, ...]]:
        """Returns the trace of a run, or the error that it ended in; and which of the groups of
        launches have met."""
        try:
            return self._trace(seq, *batch.next())
        except (UnstableMeasurement, DeadlineExceeded) as error:
            return error, ()

    @property
    def handle(self) -> _launcher.Gpu:
        """The core's object, for runs on several GPUs."""
        return self._gpu

    def time_spent(self) -> dict[str, float]:
        """Returns the seconds that each part of the work took since the GPU was opened.

        ``plan`` (checks, loading kernels), ``launch`` (from each launch call until its blocks
        started or were given up), ``release``, ``clean_up`` (behind the last event),
        ``synchronise``, ``judge`` (time stamps); within ``launch`` and ``release``, ``settle``.
        """
        return self._gpu.time_spent()

    @property
    def interruptions(self) -> int:
        """Returns how many runs were spoiled by another process's turns on the GPU.

        Such a run is repeated, so that what was observed may be good all the same.
        """
        return self._gpu.interruptions()

    def resident(self, launch: Launch) -> int:
        """Returns how many blocks of a launch fit on an idle SM, by the driver's query.

        Of a launch with clusters: how many clusters fit the idle GPU, 0 for a size that never fits.
        """
        with self._lock:
            return self._gpu.resident(launch)

    def _deadline(self, seq: Sequence, deadline: float | None) -> float:
        if deadline is not None:
            return deadline
        return min(SHORTEST_DEADLINE + _longest(seq, self.info.sms), LONGEST_DEADLINE)

    def run(
        self, request: Asked, *, warp_slots: bool, deadline: float | None, settle: float
    ) -> tuple[Trace, tuple[bool, ...]]:
        """Runs a sequence once. Returns its trace, and which of the groups of launches have met."""
        deadline = self._deadline(request.sequence, deadline)
        with self._lock:
            measured = self._gpu.run(
                request.sequence.events,
                warp_slots=warp_slots,
                deadline=deadline,
                settle=settle,
                groups=request.groups,
                issue_times=request.issue_times,
            )
        return self._trace(request.sequence, *measured)

    def _trace(
        self,
        seq: Sequence,
        measured: list[_launcher.Measured],
        called_ns: list[list[int]],
        has_met: list[bool],
    ) -> tuple[Trace, tuple[bool, ...]]:
        """Returns the trace of what the GPU measured, and which of the groups of launches have
        met.
        """
        placements = tuple(
            Placement(
                smid=launch["smid"],
                final_smid=launch["final_smid"],
                start_ns=launch["start_ns"],
                end_ns=launch["end_ns"],
                warp_slots=launch["warp_slots"],
            )
            for launch in measured
        )
        extra = {}
        if seq.timed:
            extra = issued([launch["issued_ns"] for launch in measured]) | called(called_ns)
        return Trace(seq, self.info, placements, extra=extra), tuple(has_met)

    def close(self) -> None:
        """Gives everything back. A closed Gpu cannot observe any more.

        Where blocks of a run that passed its deadline have still not left, a ``UserWarning`` says
        so: what they may use is kept until another ``Gpu`` finds them gone, or the process ends.
        """
        with self._lock:
            drained = self._gpu.close()
        if not drained:
            warnings.warn(
                f"GPU ({self.info.name}): blocks that were told to leave are still there; the "
                "memory that they use is not given back",
                UserWarning,
                stacklevel=2,
            )

    def __enter__(self) -> Gpu:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def observe(
    seq: Sequence,
    gpu: int | list[int] | tuple[int, ...] = 0,
    *,
    repeats: int = 1,
    warp_slots: bool = False,
    deadline: float | None = None,
    settle: float = SETTLE,
) -> Trace:
    """Runs a sequence on a GPU, or on several, and records where and when its blocks were.

    In a timed sequence the host issues launches, events and waits as fast as it can. Each numbered
    stream is a CUDA stream that synchronizes with the legacy stream. Streams are made in the order
    of first use. A launch without a number has a stream of its own. A block leaves by itself, some
    0.2 us after its duration and at most 0.7 us in the recordings of an H200 (traces h200-timed).
    Equal graphs are one graph, which is on the GPU before anything is launched.
    Its nodes have the issue time of its launch, and those of child graphs are nodes of the graph.

    Launches in a partition run in a green context, which the driver makes by the same split. Green
    contexts and their streams are kept. These streams are non-blocking ones, since the driver makes
    no others: if a timed sequence also uses the legacy stream, say ``non_blocking=True``.

    Values in memory are 64 bits in pinned memory of the host, set to 0 before the run.

    A block's ``trigger`` and ``memory_wait`` count from its start, without the time for which it
    has waited. If both are at the same time, it triggers first.

    In a held sequence time stamps of the blocks decide whether a block was placed before the next
    event. It was if it started before the first exit that a later release, or the end of the
    sequence, brought about. Nobody had made room until then, so the block did not wait for room.

    On several GPUs a timed sequence of launches and of host calls runs. Each host launches on one
    GPU, and its calls wait only for that one. Launches that meet count their blocks in the memory
    of the first GPU of the sequence, which the others reach as peers. If nothing has moved on any
    GPU for twice the longest duration, all host calls and ``settle``, at least 20 ms, the program
    hangs: all blocks are told to leave, and those that had not begun by then have the SM -1.
    ``extra["groups"]`` and ``extra["met"]`` say which launches met. Times are by each GPU's clock,
    from its first start.

    Args:
        seq: what to run.
        gpu: number of the GPU as CUDA counts them, or for several a list: the number of each GPU
            of the sequence. They stay open for the next call.
        repeats: runs the sequence so many times and compares the numbers of blocks per SM. The SM
            of a single block is not compared, because it may depend on what ran before. Must be 1
            for a timed sequence, whose blocks race.
        warp_slots: also records ``%warpid`` of each warp.
        deadline: seconds after which a run is given up and its blocks are released. None is 10 s;
            for a timed sequence it is 10 s more than its launches, host calls and host functions
            could take one after the other, at most an hour.
        settle: how many seconds nothing must change until the blocks that have not started count
            as waiting for room. An eighth of it is enough if every launch has started. It has no
            meaning in a timed sequence.

    Returns:
        A :class:`Trace`. ``start_ns`` and ``end_ns`` are 0 for blocks that still waited after the
        last event. In a timed sequence they count from the first start. ``timeline`` and
        ``makespan`` are as in a prediction, ``issue_times`` says when the host made each launch
        call, and ``call_times`` when each call began and returned.

    Raises:
        ValueError: something this GPU or its driver refuses or could never run: too many blocks for
            a cooperative launch, a cluster that its partition never holds, a partition that was
            made by hand or split for another GPU. None of it was launched.
        UnstableMeasurement: repeated runs differ, or what the GPU wrote is impossible.
        SharedGpu: an ``UnstableMeasurement``: another process uses the GPU, still after several
            runs and pauses.
        DeadlineExceeded: the run took too long. Every block has been told to leave, and the message
            says whether all have. If not, the next call first waits until they have.
        NoGpuError: no usable GPU; the message says what was looked for.
        CudaError: the driver refused a call.

    Example:
        >>> sequence = tb.Sequence([tb.Launch(132, 1024, 32), tb.Launch(264, 256, 32)])
        >>> observation = tb.observe(sequence, repeats=3)  # doctest: +SKIP
        >>> tb.compare(tb.predict(sequence, "h200"), observation).occupancy  # doctest: +SKIP
        True
    """
    _check(seq, repeats)
    if isinstance(gpu, list | tuple):
        if warp_slots:
            raise ValueError("observe.warp_slots: True cannot be observed on several GPUs")
        return _on_several(seq, list(gpu), deadline, settle)
    return opened(gpu).observe(
        seq, repeats=repeats, warp_slots=warp_slots, deadline=deadline, settle=settle
    )


def _on_several(
    seq: Sequence, gpu_numbers: list[int], deadline: float | None, settle: float
) -> Trace:
    """Returns the observation of a sequence on several GPUs, none of which another thread uses
    meanwhile."""
    for gpu in gpu_numbers:
        check_index(gpu)
    if not gpu_numbers or len(set(gpu_numbers)) < len(gpu_numbers):
        raise ValueError(
            f"observe.gpu: a list of different GPUs is needed, got {shown(gpu_numbers)}"
        )
    check_several(seq, len(gpu_numbers))
    if deadline is None:
        deadline = min(SHORTEST_DEADLINE + _longest(seq, 1), LONGEST_DEADLINE)
    with ExitStack() as turns:
        for gpu in sorted(gpu_numbers):  # in one order, whoever else wants several
            turns.enter_context(_locks[gpu])
        gpus = [opened(gpu) for gpu in gpu_numbers]
        return observe_several(seq, gpus, deadline=deadline, settle=settle)


def observe_many(
    sequences: Iterable[Sequence],
    gpu: int = 0,
    *,
    warp_slots: bool = False,
    deadline: float | None = None,
    settle: float = SETTLE,
) -> Generator[Outcome, None, None]:
    """Runs independent sequences one after another, while the caller looks at the results.

    A thread without Python runs what has been taken from ``sequences``, at most 33 ahead of what
    has been yielded. So the GPU is busy while sequences are made and traces compared. An
    observation means what it means for :func:`observe`.

    Ctrl-C, any exception and closing the iterator release every block and drop what has not run;
    traces yielded so far stay good.

    Args:
        sequences: what to run; taken as the GPU comes to them, so it may be endless.
        gpu, warp_slots, deadline, settle: as for :func:`observe`; the deadline is of each sequence.

    Yields:
        For each sequence, in order, its :class:`Trace`. Where a run ended in
        :class:`UnstableMeasurement` or :class:`DeadlineExceeded`, that exception is yielded in its
        place, and the next sequence runs.

    Raises:
        ValueError: a sequence that this GPU refuses.
        NoGpuError: no usable GPU; the message says what was looked for.
        CudaError: the driver refused a call.

    Example:
        >>> sequences = [tb.Sequence([tb.Launch(blocks, 256, 32)]) for blocks in (1, 132, 264)]
        >>> for found in tb.observe_many(sequences):  # doctest: +SKIP
        ...     print(found)
    """
    yield from opened(gpu).observe_many(
        sequences, warp_slots=warp_slots, deadline=deadline, settle=settle
    )


def opened(gpu: int) -> Gpu:
    """Returns a GPU that this process keeps open."""
    key = (os.getpid(), gpu)
    with _locks[gpu]:
        open_gpu = _opened.get(key)
        if open_gpu is None:
            open_gpu = _opened[key] = Gpu(gpu)
        return open_gpu


def close_opened(gpu: int) -> None:
    """Closes what :func:`opened` keeps open, if anything; the next call opens it anew."""
    with _locks[gpu]:
        open_gpu = _opened.pop((os.getpid(), gpu), None)
        if open_gpu is not None:
            open_gpu.close()


def _check(seq: Sequence, repeats: int) -> None:
    """Refuses arguments that :func:`observe` cannot take."""
    if not isinstance(seq, Sequence):
        raise TypeError(f"observe: a Sequence is needed, got {shown(seq)}")
    if isinstance(repeats, bool) or not isinstance(repeats, int):
        raise TypeError(f"repeats: an integer is needed, got {shown(repeats)}")
    if repeats < 1:
        raise ValueError(f"repeats: {repeats} is less than 1")
    if seq.timed and repeats > 1:
        raise ValueError(f"repeats: {repeats} must be 1 for launches with durations")


def _longest(seq: Sequence, sms: int) -> float:
    """Returns the seconds of all launches and host work, one after the other."""
    launches = sum(
        float(launch.duration_ns().max(initial=0)) / 1e9 * -(-launch.blocks // sms)
        for launch in seq.launches
    )
    return launches + sum(
        event.duration for event in seq if isinstance(event, HostCall | HostFunction)
    )


def _same_occupancy(first: Trace, other: Trace, run: int) -> None:
    """Raises UnstableMeasurement if two runs have other numbers of blocks on an SM."""
    sms = first.device.sms
    for launch, (a, b) in enumerate(zip(first, other, strict=True)):
        for moment, before, after in (
            ("before the next event", a.smid, b.smid),
            ("after all events", a.final_smid, b.final_smid),
        ):
            assert before is not None
            assert after is not None
            counts = [np.bincount(smid[smid >= 0], minlength=sms) for smid in (before, after)]
            differing = np.flatnonzero(counts[0] != counts[1])
            if differing.size:
                sm = int(differing[0])
                raise UnstableMeasurement(
                    f"launch {launch} had {counts[0][sm]} blocks on SM {sm} {moment} in the first "
                    f"run and {counts[1][sm]} in run {run + 1}"
                )
