"""Brings an idle GPU to a known latent state, so that what it does next can be repeated.

An idle GPU remembers whose turn it is: :class:`InitialState`. Launches move that on just as the
model says. So a probe reveals the state, and short launches lead from there to any other; both are
searched for in the model, once per device.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

from tbsched.errors import UnstableMeasurement, shown
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.launcher.meet import LIMIT, GroupsAsked, Meeting, meet
from tbsched.launcher.observe import Gpu
from tbsched.prediction.predict import is_predictable, predict
from tbsched.program.checks import instance
from tbsched.program.sequence import Event, Launch, Release, Sequence
from tbsched.traces.oracle import Oracle
from tbsched.traces.trace import Trace

Step: TypeAlias = tuple[Launch, ...]  # launches that are held together, and then released

TRIES = 3


def steer(
    gpu: Oracle,
    device: str | os.PathLike[str] | DeviceSpec = "h200",
    to: InitialState | None = None,
) -> InitialState:
    """Brings an idle GPU to a latent state of the scheduler, with a few short launches.

    The last launch is a probe. Where its blocks went shows that the state is the wanted one.

    Args:
        gpu: an open ``Gpu``, or anything with ``observe(seq)`` that keeps its state in between.
        device: whose model the GPU follows, as for :func:`tbsched.predict`.
        to: one of ``DeviceSpec.initial_states()``; None is the first. For a device that has only
            one, nothing runs.

    Returns:
        The state that the GPU was in before.

    Raises:
        TypeError, ValueError: no oracle, an unknown device or state, or a device whose states the
            model cannot tell apart or reach with short launches.
        UnstableMeasurement: no state explains what the probe shows, or the wanted one was not
            reached in three tries.
        DeadlineExceeded: a run on the GPU took too long.
        CudaError: the driver refused a call.

    Example:
        >>> from tbsched.launcher.observe import Gpu
        >>> with Gpu(0) as gpu:  # doctest: +SKIP
        ...     tb.steer(gpu, "h200", to=tb.InitialState(first_gpc=3))
        InitialState(first_gpc=5, first_singleton=0)
    """
    _check_oracle(gpu)
    spec = find_device(device)
    goal = _goal(spec, to)
    states = spec.initial_states()
    if len(states) == 1:
        return states[0]
    chart = _chart(spec)
    states_shown: list[int] = []
    for _ in range(1 + TRIES):
        state = chart.states.get(_shown(gpu.observe(_in_steps((chart.probe,)))))
        if state is None:
            continue
        states_shown.append(state)
        now = chart.after_probe[state]
        if now == goal:
            return states[states_shown[0]]
        way = chart.way(now, goal)
        if way is None:
            raise ValueError(
                f"to: no short launches bring {spec.name} from {states[state]} to {states[goal]}"
            )
        if way:
            gpu.observe(_in_steps(*way))
    if not states_shown:
        raise UnstableMeasurement(
            f"steer: no initial state of {spec.name} explains where the probe's blocks went, "
            f"{1 + TRIES} times"
        )
    raise UnstableMeasurement(
        f"steer: {states[goal]} was not reached in {TRIES} tries; found {states[states_shown[-1]]}"
    )


class Steered:
    """An oracle that is brought to one latent state before every sequence.

    Two observations of one sequence are then equal block by block. One prediction is enough to
    compare them with: ``predict(seq, device, initial_state=steered.initial_state)``.

    Args:
        gpu, device, to: as for :func:`steer`.

    Attributes:
        initial_state: where every sequence starts from.

    Raises:
        TypeError, ValueError: an unknown device or state.

    Example:
        >>> from tbsched.campaigns import ModelGpu
        >>> tb.Steered(ModelGpu("h200"), "h200").initial_state
        InitialState(first_gpc=0, first_singleton=0)
    """

    def __init__(
        self,
        gpu: Oracle,
        device: str | os.PathLike[str] | DeviceSpec = "h200",
        to: InitialState | None = None,
    ) -> None:
        _check_oracle(gpu)
        self._gpu = gpu
        self._spec = find_device(device)
        self.initial_state = self._spec.initial_states()[_goal(self._spec, to)]

    def observe(self, seq: Sequence, /) -> Trace:
        """Brings the GPU into the wanted latent state, then observes a sequence, and returns the
        trace.

        Raises:
            TypeError, ValueError, UnstableMeasurement: as :func:`steer`, and as the oracle.
            DeadlineExceeded, CudaError: as the oracle.

        Example:
            >>> from tbsched.campaigns import ModelGpu
            >>> steered = tb.Steered(ModelGpu("h200"), "h200")
            >>> steered.observe(tb.Sequence([tb.Launch(8, 64, 32)]))[0].placed
            8
        """
        steer(self._gpu, self._spec, self.initial_state)
        return self._gpu.observe(seq)

    def meet(self, seq: Sequence, groups: GroupsAsked = None, *, limit: float = LIMIT) -> Meeting:
        """Brings the GPU into the wanted latent state, then runs launches whose blocks meet, and
        returns which met.

        Args:
            seq, groups, limit: as for :func:`tbsched.meet`.

        Raises:
            TypeError: the oracle is no open ``Gpu``.
            ValueError, UnstableMeasurement, DeadlineExceeded, CudaError: as :func:`steer`, and as
                :func:`tbsched.meet`.

        Example:
            >>> from tbsched.launcher.observe import Gpu
            >>> with Gpu(0) as gpu:  # doctest: +SKIP
            ...     steered = tb.Steered(gpu, "h200", tb.InitialState(first_gpc=3))
            ...     print(steered.meet(tb.Sequence([tb.Launch(132, 1024, 32)])))
            group 0 has met: launch 0
        """
        gpu = instance("Steered", "gpu", self._gpu, Gpu)
        steer(gpu, self._spec, self.initial_state)
        return meet(seq, groups, gpu=gpu, limit=limit)


@dataclass(frozen=True, slots=True)
class _Chart:
    """Latent states of a device by number, and transitions between them by launches.

    Attributes:
        probe: a launch whose placement differs between all states.
        states: state by placement of the probe.
        after_probe: successor of each state by the probe.
        moves: successor of each state by each step; None: it is none of the states.
    """

    probe: Launch
    states: dict[bytes, int]
    after_probe: tuple[int | None, ...]
    moves: dict[Step, tuple[int | None, ...]]

    def way(self, begin: int | None, goal: int) -> tuple[Step, ...] | None:
        """Returns the fewest steps from one state after which the probe leads to the goal; None:
        there are none."""
        ways: dict[int | None, tuple[Step, ...]] = {begin: ()}
        ahead = deque(ways)
        while ahead:
            state = ahead.popleft()
            if state is None:
                continue
            if self.after_probe[state] == goal:
                return ways[state]
            for step, leads_to in self.moves.items():
                if leads_to[state] not in ways:
                    ways[leads_to[state]] = (*ways[state], step)
                    ahead.append(leads_to[state])
        return None


@functools.lru_cache(maxsize=16)
def _chart(spec: DeviceSpec) -> _Chart:
    """Returns, for a device, the steps that lead from one latent state to another, and the probe
    that tells the states apart."""
    launches = _short_launches(spec)
    # Preferred SMs must be held for a launch to take the others alone.
    steps: list[Step] = [(launch,) for launch in launches]
    steps += itertools.product(launches, launches[:1])
    for probe in launches:
        states = _states_by_placement(spec, probe)
        if states is None:
            continue
        after_probe = _leads_to(spec, (probe,), probe, states)
        # Every state must be one that the probe can leave behind.
        if set(after_probe) == set(states.values()):
            moves = {step: _leads_to(spec, step, probe, states) for step in steps}
            return _Chart(probe, states, after_probe, moves)
    raise ValueError(f"steer: no short launch tells the initial states of {spec.name} apart")


def _short_launches(spec: DeviceSpec) -> tuple[Launch, ...]:
    """Returns short launches, fewest blocks first; of clusters if any fit the device."""
    clusters = [Launch(size, 32, 16, carveout=100, cluster=size) for size in (2, 4, 8)]
    sizes = [one.cluster for one in clusters if is_predictable(Sequence([one]), spec)]
    if not sizes:
        return tuple(Launch(blocks, 32, 16, carveout=100) for blocks in range(1, spec.sms + 1))
    return tuple(
        Launch(size * count, 32, 16, carveout=100, cluster=size)
        for count in range(1, 2 * len(spec.gpcs) + 1)
        for size in sizes
        if size * count <= spec.sms
    )


def _states_by_placement(spec: DeviceSpec, probe: Launch) -> dict[bytes, int] | None:
    """Returns the state that each placement of ``probe`` shows; None if two look alike."""
    states: dict[bytes, int] = {}
    for index, state in enumerate(spec.initial_states()):
        shown = _shown(predict(_in_steps((probe,)), spec, initial_state=state))
        if states.setdefault(shown, index) != index:
            return None
    return states


def _leads_to(
    spec: DeviceSpec, step: Step, probe: Launch, states: dict[bytes, int]
) -> tuple[int | None, ...]:
    """Returns the state to which a step leads from each state; None where it is not clear."""
    sequence = _in_steps(step, (probe,))
    return tuple(
        states.get(_shown(predict(sequence, spec, initial_state=state)))
        for state in spec.initial_states()
    )


def _in_steps(*steps: Step) -> Sequence:
    """Returns a sequence of steps; the launches of each are released before the next."""
    events: list[Event] = []
    launches = 0
    for step in steps:
        events += step
        events += [Release(launches + index) for index in range(len(step))]
        launches += len(step)
    return Sequence(events)


def _shown(trace: Trace) -> bytes:
    """Returns the placement of the last launch, the probe."""
    return trace[-1].smid.tobytes()


def _check_oracle(gpu: object) -> None:
    """Refuses what cannot observe."""
    if not isinstance(gpu, Oracle):
        raise TypeError(
            f"gpu: an open Gpu, or an object with observe(seq), is needed, got {shown(gpu)}"
        )


def _goal(spec: DeviceSpec, to: InitialState | None) -> int:
    """Returns the index of the state to reach; None stands for the first."""
    states = spec.initial_states()
    if to is None:
        return 0
    if not isinstance(to, InitialState):
        raise TypeError(f"to: an InitialState is needed, got {shown(to)}")
    if to not in states:
        raise ValueError(f"to: {to} is not one of {spec.name}'s initial_states()")
    return states.index(to)
