"""Predicts the SM of every block of a sequence."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as ListOf
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tbsched import _core
from tbsched.hardware.catalogue import device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import Calls, calls_of
from tbsched.prediction.limiters import limiters_of, wait_limiters
from tbsched.prediction.model import known_state, policy_of, prepared
from tbsched.prediction.neighbours.profiles import KernelProfile
from tbsched.prediction.neighbours.slowing import Neighbours, neighbours_of
from tbsched.prediction.own_policy import Choices, ChooseSm
from tbsched.prediction.program_device import with_connections
from tbsched.prediction.recorded import (
    host_write_ns,
    ran_ns,
    recorded_calls,
    until_first_end,
    with_own_transfer_times,
)
from tbsched.prediction.recorded import issue_times as recorded_issue_times
from tbsched.prediction.residents import residents_at
from tbsched.prediction.several_gpus import SeveralGpus
from tbsched.program.arrays import Int32Array, Int64Array, StructuredArray, read_only
from tbsched.program.checks import MAX_SECONDS, flag, instance, integer, items, seconds
from tbsched.program.meeting_groups import meeting_groups
from tbsched.program.one_gpu import one_gpu
from tbsched.program.sequence import Sequence, with_durations
from tbsched.traces.annotations import issued, known_times
from tbsched.traces.hang import HungLaunch, hang_of, refuse_hang
from tbsched.traces.placement import DeviceInfo, Placement, Room
from tbsched.traces.residents import Residents
from tbsched.traces.trace import Trace

MAX_PREDICTED_BLOCKS = 2**28
MAX_THREADS = 1024
_CAUSES = np.array(_core.CAUSES)
_WAIT = np.dtype(
    [("launch", np.int32), ("begin_ns", np.int64), ("end_ns", np.int64), ("cause", "U16"),
     ("behind", np.int32)]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Policy:
    """A row of the table of policies, or of launch orders.

    Attributes:
        name: what ``policy`` or ``launch_order`` takes.
        summary: what it does.
        source: the paper or the measurement that it comes from.

    Example:
        >>> tb.policies()[0].name
        'first_fit'
    """

    name: str
    summary: str
    source: str


def policies() -> tuple[Policy, ...]:
    """Returns the policy table: what :func:`predict` takes as ``policy``, the weakest first.

    Example:
        >>> [row.name for row in tb.policies()][-3:]
        ['algorithm1', 'ampere', 'hopper']
    """
    return tuple(Policy(*row) for row in _core.policies())


def launch_orders() -> tuple[Policy, ...]:
    """Returns the orders in which waiting launches are considered: ``DeviceSpec.launch_order``.

    Example:
        >>> [row.name for row in tb.launch_orders()]
        ['leftover', 'fifo', 'pass_by', 'one_line']
    """
    return tuple(Policy(*row) for row in _core.launch_orders())


def predict(
    seq: Sequence,
    device: str | os.PathLike[str] | DeviceSpec | ListOf[str | os.PathLike[str] | DeviceSpec],
    policy: str | ChooseSm | None = None,
    initial_state: InitialState | None = None,
    *,
    launch_interval: float = 0.0,
    issue_times: Iterable[float] | None = None,
    host: float | Iterable[float] | None = None,
    connections: int | None = None,
    warp_slots: bool = False,
    interference: str | None = None,
    profiles: Mapping[str, KernelProfile] | None = None,
) -> Trace:
    """Predicts the SM of every block of a sequence, and when it runs if the sequence is timed.

    A launch that could never run on the device is refused. In a held sequence, blocks that still
    wait after the last event have -1 in place of an SM.

    Args:
        seq: launches and releases, or launches with durations and CUDA events.
        device: a name (:func:`tbsched.devices`), the path of a ``.toml`` file, or a spec; or, for a
            timed sequence, a list of them, one for each GPU. One device is one GPU: work of another
            GPU is then refused. Hosts, CUDA events and values are common to all GPUs. What happens
            on one GPU is known on the others as soon as there, which is not measured.
            :doc:`/how-to/several-gpus` says more.
        policy: a row of :func:`policies`, or a function of your own; None is the device's own. The
            function is called for one block after the other, with the number of blocks of that
            launch for which each SM has room now: int32 (SMs,), by SMID. It returns the SM that
            the block goes to, or -1 to let the block wait. It is slow: a call of Python for each
            block. :doc:`/how-to/add-a-policy` has examples.
        initial_state: one of ``DeviceSpec.initial_states(policy)``; None is the first.
        launch_interval: in a timed sequence, seconds from one launch call of a host thread to the
            next. Calls take no time, but for a :class:`Synchronize` and others that wait.
        issue_times: in a timed sequence, when the host issues each launch: ascending seconds, such
            as ``Trace.issue_times`` of a recording. With several host threads they ascend in each.
            The host has then waited already: a :class:`Synchronize` changes nothing. What is
            between two launches of a thread, such as a copy, is issued right after the first of
            them, and what is before its first launch together with that. As many times as
            there are events, if that is another number, are when the host makes each call.
        host: in a timed sequence, for each event the seconds since the last call of its host thread
            returned, of a thread's first call since the program began; one number is for all. Calls
            take their time, and wait where a real host waits. ``Trace.issue_times`` of the result
            says when each launch call is made. Only one of ``launch_interval``, ``issue_times`` and
            ``host`` can be given.
        connections: the environment variable ``CUDA_DEVICE_MAX_CONNECTIONS`` of the process, of
            which CUDA takes 1 to 32; None is the device's own number of hardware queues.
        warp_slots: in a held sequence, also predicts ``%warpid`` of each warp. A warp takes the
            lowest free slot s of its processing block p. With n processing blocks its ``%warpid``
            is p + n * s (measured: traces h200/slots). The processing block at which an SM starts
            is latent. A prediction takes 0 on every SM, so compare it with
            ``Diff.warp_slots_agree``, which allows for that. Policies without processing blocks
            take the lowest free slot of the SM.
        interference: ``"measured"``: blocks slow each other, as ``profiles`` say, and durations are
            of a launch that is alone on the GPU. None: every block runs for its duration.
        profiles: with ``interference``, a profile for the ``name`` of each launch, such as
            :func:`tbsched.sm.load_ncu` reads.

    Returns:
        A :class:`Trace` with a :class:`Placement` for each launch. That of a timed sequence also
        has times: ``start_ns`` and ``end_ns`` of each placement, and ``timeline``, ``makespan``,
        ``waits`` and ``explain`` of the trace. A program that hangs is no error: ``hang`` of the
        trace says why, and the times are of what did run.

    Raises:
        TypeError, ValueError: a sequence that cannot run on the device; clusters under a policy
            that places none; an unknown device, policy or state; launch_interval, issue_times or
            host for a held sequence, or two of them at once; issue_times that are not one per
            launch and ascending; not one gap per event in host; warp_slots for a timed sequence, or
            for a device without ``strict_round_robin``; more than 2**28 blocks, or in a timed
            sequence 2**26 blocks or 2**24 waits; ``interference`` with a launch that has no
            profile, is programmatic, meets others or has a trigger; a GPU without a device; with
            several devices, a held sequence, ``interference``, ``warp_slots`` or a policy of your
            own; a group that cannot meet (:class:`Launch`); with a policy of your own, a
            cooperative launch, an SM that has no room for the block, or, in a timed sequence,
            blocks that wait for ever. The message names the field, the value and the limit.

    Example:
        >>> sequence = tb.Sequence([tb.Launch(41, 512, 32), tb.Launch(1, 256, 32)])
        >>> [placement.smid[-1].item() for placement in tb.predict(sequence, "rtx3090")]
        [80, 1]
        >>> program = tb.Sequence([tb.Launch(264, 1024, 64, duration=1e-3)])
        >>> round(1e3 * tb.predict(program, "h200").makespan)  # two waves of 1 ms
        2
        >>> last = lambda room: max(room.nonzero()[0])  # the last SM that has room
        >>> tb.predict(sequence, "rtx3090", policy=last)[0].smid.tolist()[:4]
        [81, 81, 81, 80]
    """
    one: str | os.PathLike[str] | DeviceSpec
    if isinstance(device, list | tuple) and len(device) != 1:
        return _predict_several(
            seq,
            SeveralGpus(device, _policy_name(policy), initial_state, connections),
            calls_of(
                seq, seconds("predict", "launch_interval", launch_interval), issue_times, host
            ),
            refused={"interference": interference, "warp_slots": warp_slots or None},
        )
    if isinstance(device, list | tuple):
        (one,) = device
    else:
        one = cast(str | os.PathLike[str] | DeviceSpec, device)
    spec = with_connections("predict", _spec(one), connections)
    run = Run(spec, policy, initial_state, launch_interval, warp_slots, takes_functions=True)
    events = run.events(seq)
    neighbours = neighbours_of(seq, run.device, interference, profiles)
    return run.predicted(seq, events, run.calls(seq, issue_times, host), neighbours)


def is_predictable(seq: Sequence, device: DeviceSpec) -> bool:
    """Returns whether the device can run a sequence: whether :func:`predict` takes it."""
    try:
        predict(seq, device)
    except ValueError:
        return False
    return True


def predict_launches(
    seq: Sequence, device: DeviceSpec, *, issue_times: Iterable[float] | None = None,
    host: float | Iterable[float] | None = None,
) -> Trace:  # fmt: skip
    """Predicts a timed sequence without its single blocks, in a fraction of the time and memory.

    Each placement has one row: an SM, the first start and the last end of the launch's blocks.
    All else is as of :func:`predict`.

    Raises:
        TypeError, ValueError: as for :func:`predict`.
    """
    run = Run(device, None, None, 0.0, False)
    events, calls = run.events(seq), run.calls(seq, issue_times, host)
    rows = _core.predict_launches(run.model, events, run.state, *calls)
    return _timed_trace(seq, run.info, None, *rows, whole_launches=True)


def _policy_name(policy: str | ChooseSm | None) -> str | None:
    """Returns the policy, and refuses a Python function."""
    if policy is not None and not isinstance(policy, str):
        raise ValueError("predict.policy: a policy of your own is for one GPU")
    return policy


def _predict_several(
    seq: Sequence, gpus: SeveralGpus, calls: Calls, refused: Mapping[str, object]
) -> Trace:
    """Predicts a sequence over several GPUs; arguments in ``refused`` must be None."""
    for name, value in refused.items():
        if value is not None:
            raise ValueError(f"predict.{name}: {value!r} is for one GPU; there are several devices")
    gpus.check(seq)
    if not seq.timed:
        raise ValueError("predict.device: several devices need launches with durations")
    check_blocks(seq)
    meeting_groups(seq)
    info, *others = gpus.infos
    return _timed_trace(
        seq, info, gpus.replay(seq, calls), *gpus.rows(seq, calls), others=tuple(others)
    )


def predict_many(
    sequences: Iterable[Sequence],
    device: str | os.PathLike[str] | DeviceSpec,
    policy: str | None = None,
    initial_state: InitialState | None = None,
    *,
    threads: int | None = None,
    launch_interval: float = 0.0,
    connections: int | None = None,
    warp_slots: bool = False,
) -> tuple[Trace, ...]:
    """Predicts many sequences, each as :func:`predict` does, on several threads at once.

    Args:
        sequences: each starts on an idle device; some may be timed and others not.
        device, policy, initial_state, launch_interval, connections, warp_slots: as for
            :func:`predict`.
        threads: how many run at once, without Python's lock, 1 to 1024; None is one per core.

    Returns:
        A :class:`Trace` per sequence, in their order, whatever the number of threads. Arrays are
        the memory that the core wrote.

    Raises:
        TypeError, ValueError: as for :func:`predict`; the first sequence at fault is named by its
            number.

    Example:
        >>> sequences = [tb.Sequence([tb.Launch(blocks, 256, 32)]) for blocks in (1, 132, 264)]
        >>> [trace[0].placed for trace in tb.predict_many(sequences, "h200")]
        [1, 132, 264]
    """
    if threads is None:
        threads = os.cpu_count() or 1
    threads = integer("predict_many", "threads", threads, 1, MAX_THREADS)
    spec = with_connections("predict_many", _spec(device), connections)
    run = Run(spec, policy, initial_state, launch_interval, warp_slots)
    rows: list[tuple[Sequence, _core.Sequence]] = []
    for number, seq in enumerate(items("predict_many", "sequences", sequences)):
        try:
            rows.append((seq, run.events(seq)))
        except (TypeError, ValueError) as error:
            raise type(error)(f"sequence {number}: {error}") from None
    found = _core.predict_many(
        run.model, [events for _, events in rows], run.state, run.interval_ns, warp_slots, threads,
    )  # fmt: skip
    return tuple(
        run.trace(seq, result, run.calls(seq, None))
        for (seq, _), result in zip(rows, found, strict=True)
    )


def matching_state(
    observation: Trace, spec: DeviceSpec, policy: str | None, states: list[InitialState]
) -> InitialState | None:
    """Returns the first latent state from which each block is predicted on its observed SM.

    Only SMs before the next event count. None: no state of ``states`` does.

    Args:
        observation: of a held sequence that :func:`predict` takes.
        spec, policy: as for :func:`predict`.
        states: in the order in which they are tried.
    """
    model, _, core_states = prepared(spec, spec.policy if policy is None else policy)
    index = _core.matching_state(
        model,
        _core.Sequence(observation.sequence.events),
        [core_states[state] for state in states],
        np.concatenate([np.empty(0, np.int32), *(placement.smid for placement in observation)]),
    )
    return None if index is None else states[index]


def predict_as_recorded(
    observation: Trace,
    device: str | os.PathLike[str] | DeviceSpec,
    policy: str | None = None,
    initial_state: InitialState | None = None,
) -> Trace:
    """Predicts a recorded sequence, and takes from the recording what chance decided.

    From a timed recording it takes three things. The first is how long each block ran: on a GPU a
    block leaves some 0.2 us later than asked (H200, traces h200-timed/programs), and the block that
    leaves first decides where the next one goes. The second is when the driver handed on launches
    that waited for nothing. The third is the latent state: the launches before the first end of a
    block show it. The last two need ``issue_times`` in the recording. How long a block waited for
    memory (``Launch.memory_wait``) is predicted. So is how long copies and memsets took, unless the
    trace says: a GPU does not know what ``duration`` they were given.

    From a held recording it takes where blocks went that found room while others left. Each goes
    where the recording has it, if it could go there in any order of leaving, and the turn of the
    policy goes on from there. Everything else is predicted. So the observation is one of the
    outcomes of the race if the two agree in blocks per SM. One of the orders is that of
    :func:`predict`, where all blocks leave at once: a prediction comes out as it is.

    Args:
        observation: a trace, of a timed sequence with ``start_ns`` and ``end_ns``, of a held one
            with ``final_smid``.
        device, policy: as for :func:`tbsched.predict`.
        initial_state: as for :func:`tbsched.predict`. None: for a timed recording, the first state
            that explains where its first blocks are.

    Returns:
        A trace of the observation's own sequence, for :func:`compare_times` or :func:`compare`.

    Raises:
        TypeError, ValueError: as for :func:`tbsched.predict`; the trace does not say when blocks
            ran, or where they were in the end.

    Example:
        >>> program = tb.Sequence([tb.Launch(264, 1024, 64, duration=1e-3)])
        >>> played = tb.predict(program, "h200")  # or tb.observe(program)
        >>> tb.compare_times(tb.predict_as_recorded(played, "h200"), played).makespan_error
        0.0
    """
    instance("predict_as_recorded", "observation", observation, Trace)
    one_gpu("predict_as_recorded", observation.sequence)
    refuse_hang("predict_as_recorded", observation)
    policy = None if policy is None else policy_of(_spec(device), policy)
    if not observation.sequence.timed:
        run = Run(device, policy, initial_state, 0.0, False)
        return run.raced(observation.sequence, _core.predict_as_recorded(
            run.model, run.events(observation.sequence), run.state, _observed_sms(observation),
        ))  # fmt: skip
    spec = _spec(device)
    ran = [tuple((ns / 1e9).tolist()) for ns in ran_ns(observation, spec)]
    sequence = observation.sequence
    if observation.issue_times is not None and observation.transfer_ns is None:
        sequence = with_own_transfer_times(sequence)
    launches = sequence.launches
    timed = with_durations(
        sequence, [replace(launch, duration=own) for launch, own in zip(launches, ran, strict=True)]
    )
    if observation.issue_times is not None and initial_state is None:
        states = list(spec.initial_states(policy))
        initial_state = matching_state(until_first_end(observation), spec, policy, states)
    issued = observation.issue_times
    if issued is None:
        trace = predict(timed, spec, policy, initial_state)
    else:
        trace = _predict_called(timed, observation, issued, (spec, policy, initial_state))
        handed_on = recorded_issue_times(observation, trace, spec) or issued
        late = replace(spec, host_write_ns=host_write_ns(observation, trace, spec))
        trace = _predict_called(timed, observation, handed_on, (late, policy, initial_state))
    return replace(trace, sequence=observation.sequence)


def _predict_called(
    seq: Sequence,
    observation: Trace,
    issue_times: Iterable[float],
    predictor: tuple[DeviceSpec, str | None, InitialState | None],
) -> Trace:
    """Returns the prediction of a sequence with given issue times, and calls as recorded."""
    run = Run(*predictor, 0.0, False)
    return run.predicted(seq, run.events(seq), recorded_calls(observation, list(issue_times)))


def _observed_sms(observation: Trace) -> list[tuple[Int32Array, Int32Array]]:
    """Returns the SM of each launch's blocks before the next event, and after the last event."""
    sms_by_launch = []
    for placement in observation:
        if placement.final_smid is None:
            raise ValueError("predict_as_recorded: nobody recorded where blocks were in the end")
        sms_by_launch.append((placement.smid, placement.final_smid))
    return sms_by_launch


def check_blocks(seq: Sequence) -> None:
    """Refuses more blocks than a prediction takes. Raises ValueError: names the number and the
    limit."""
    blocks = sum([launch.blocks for launch in seq.launches])
    limit = _core.MAX_TIMED_BLOCKS if seq.timed else MAX_PREDICTED_BLOCKS
    if blocks > limit:
        raise ValueError(f"blocks: {blocks} in all are more than {limit}; predict a part at a time")


class Run:
    """Checked arguments that the predictions of one call share."""

    def __init__(
        self,
        device: str | os.PathLike[str] | DeviceSpec,
        policy: str | ChooseSm | None,
        initial_state: InitialState | None,
        launch_interval: float,
        warp_slots: bool,
        *,
        takes_functions: bool = False,  # as the policy
    ) -> None:
        self.device = _spec(device)
        self._warp_slots = flag("predict", "warp_slots", warp_slots)
        self._interval = seconds("predict", "launch_interval", launch_interval)
        self.interval_ns = round(self._interval * 1e9)
        self._policy: str | Choices
        if takes_functions and isinstance(policy, type):
            raise TypeError(f"policy: a class; an object of it is needed, {policy.__name__}()")
        if takes_functions and callable(policy):
            self._policy = Choices.by(policy)
            _, self.info, states = prepared(self.device, self._policy)
            self.model = _core.Model(self.device, self._policy.recorded(policy))
        else:
            self._policy = policy_of(self.device, policy)
            self.model, self.info, states = prepared(self.device, self._policy)
        if initial_state is None:
            self._initial_state, self.state = next(iter(states.items()))
        else:
            self.state = known_state(self.device, self._policy, initial_state)
            self._initial_state = initial_state

    def events(self, seq: Sequence) -> _core.Sequence:
        """Returns the core's value of a sequence, and refuses one that cannot run on the device."""
        self.device.check(seq)
        if seq.gpus > 1:
            raise ValueError(
                f"predict.device: one device is one GPU, but the sequence has work of GPU "
                f"{seq.gpus - 1}; predict takes a list with a device for each GPU"
            )
        check_blocks(seq)
        meeting_groups(seq)
        if self._warp_slots:
            self._check_slots(seq)
        if self._interval * len(seq.launches) > MAX_SECONDS:
            raise ValueError(
                f"launch_interval: {self._interval} for each of {len(seq.launches)} launches is "
                "beyond the range of time, 1e9 seconds"
            )
        return _core.Sequence(seq.events)

    def calls(
        self,
        seq: Sequence,
        issue_times: Iterable[float] | None,
        host: float | Iterable[float] | None = None,
    ) -> Calls:
        """Returns when the host makes the calls of a sequence."""
        return calls_of(seq, self._interval, issue_times, host)

    def _check_slots(self, seq: Sequence) -> None:
        """Checks that warp slots can be predicted: a held sequence, and not too many warps."""
        warps = sum(launch.blocks * -(-launch.threads // 32) for launch in seq.launches)
        if warps > MAX_PREDICTED_BLOCKS:
            raise ValueError(
                f"warp_slots: {warps} warps in all are more than {MAX_PREDICTED_BLOCKS}"
            )
        if seq.timed:
            raise ValueError("warp_slots: True needs launches that are held until released")

    def predicted(
        self, seq: Sequence, events: _core.Sequence, calls: Calls,
        neighbours: Neighbours | None = None,
    ) -> Trace:  # fmt: skip
        """Returns the prediction of one sequence that :meth:`events` has checked."""
        rows: Any
        if seq.timed:
            rows = _core.predict_timeline(self.model, events, self.state, *calls, [], neighbours)
        else:
            rows = _core.predict(self.model, events, self.state, self._warp_slots)
        return self.trace(seq, rows, calls, neighbours)

    def trace(
        self, seq: Sequence, rows: Any, calls: Calls, neighbours: Neighbours | None = None
    ) -> Trace:
        """Returns the core's answer about a sequence as a trace."""
        of = (self.device, self._policy, self._initial_state, seq)
        if seq.timed:
            replay = functools.partial(residents_at, *of, calls, neighbours=neighbours)
            return self.timed(seq, rows, replay)
        return Trace(
            seq, self.info, _placements(rows), capacities=functools.partial(_capacities, *of),
            replay=functools.partial(residents_at, *of, None), check=False,
        )  # fmt: skip

    def timed(self, seq: Sequence, rows: Any, replay: Callable[[int], Residents] | None) -> Trace:
        """Returns the core's timeline as a trace; without ``replay`` it has no snapshots of SMs."""
        return _timed_trace(seq, self.info, replay, *rows)

    def raced(self, seq: Sequence, rows: Any) -> Trace:
        """Returns one outcome of a race as a trace without snapshots of SMs."""
        return Trace(seq, self.info, _placements(rows), check=False)


def _placements(rows: Any) -> tuple[Placement, ...]:
    """Returns the core's rows of a held sequence, one per launch, as placements."""
    return tuple(
        [
            Placement(smid, final_smid, limiter, None, None, slots)
            for smid, final_smid, limiter, slots in rows
        ]
    )


def _capacities(
    spec: DeviceSpec, policy: str | Choices, state: InitialState, seq: Sequence
) -> tuple[Room, ...]:
    """Returns for each launch, by SM, how many of its blocks the SM had room for when the launch
    was scheduled. It predicts the sequence again, so that a trace from another process can ask,
    too."""
    model, _, core_states = prepared(spec, policy)
    core_rows = _core.capacities(model, _core.Sequence(seq.events), core_states[state])
    rooms = []
    for blocks, first, every in core_rows:
        limiters = limiters_of(first, every)
        rooms.append(Room(blocks, tuple(words[0] for words in limiters), limiters))
    return tuple(rooms)


def _timed_trace(
    seq: Sequence,
    info: DeviceInfo,
    replay: Callable[[int], Residents] | None,
    blocks: tuple[Int32Array, Int64Array, Int64Array],
    wait_columns: tuple[
        Int32Array, Int32Array, Int64Array, Int64Array, Int32Array, npt.NDArray[np.uint32]
    ],
    hardware_queues: Int32Array,
    issued_ns: Int64Array | None,
    transfer_times: tuple[Int64Array, Int64Array],
    call_times: tuple[Int64Array, Int64Array],
    left: tuple[list[HungLaunch], list[int], list[tuple[int, str, int, int]]] | None,
    *,
    others: tuple[DeviceInfo, ...] = (),
    whole_launches: bool = False,  # whether ``blocks`` has a row for each launch
) -> Trace:
    """Returns the columns of a timeline, as the core gives them, as a trace."""
    sm, start_ns, end_ns = blocks
    for column in blocks:
        read_only(column)  # slices are so, too: no placement makes views of its own
    waits, (causes, every) = _wait_rows(*wait_columns[:5]), wait_columns[4:]
    sizes = [1 if whole_launches else launch.blocks for launch in seq.launches]
    bounds = np.cumsum([0, *sizes]).tolist()
    # From the last wait of a launch to its first one, which stays.
    backwards = zip(wait_columns[0][::-1].tolist(), causes[::-1].tolist(), strict=True)
    limiters = {launch: _core.CAUSES[cause] for launch, cause in backwards}
    hang = None if left is None else hang_of(seq, *left)
    if hang is not None:
        limiters = {each.launch: each.cause for each in hang.stranded} | limiters
    placements = []
    for launch, queue in enumerate(hardware_queues.tolist()):
        rows = slice(bounds[launch], bounds[launch + 1])
        placements.append(
            Placement(
                sm[rows],
                sm[rows],
                limiters.get(launch),
                start_ns=start_ns[rows],
                end_ns=end_ns[rows],
                hardware_queue=queue,
            )
        )
    extra = {} if issued_ns is None else issued(known_times(issued_ns))
    return Trace(
        seq, info, tuple(placements), extra=extra, waits=waits, replay=replay,
        wait_limiters=functools.partial(wait_limiters, causes, every),
        transfer_ns=np.stack(transfer_times, axis=1),
        call_ns=np.stack(call_times, axis=1) if len(call_times[0]) else None, hang=hang,
        others=others, check=False,
    )  # fmt: skip


def _wait_rows(
    launch: Int32Array, behind: Int32Array, begin_ns: Int64Array, end_ns: Int64Array,
    cause: Int32Array,
) -> StructuredArray:  # fmt: skip
    """Returns the core's columns of waits as rows, with causes as words."""
    rows = np.empty(len(launch), _WAIT)
    rows["launch"], rows["behind"] = launch, behind
    rows["begin_ns"], rows["end_ns"] = begin_ns, end_ns
    rows["cause"] = _CAUSES[cause]
    return read_only(rows)


_spec = device  # predict() has a parameter of that name
