"""How a standstill may come about: when launches arrive, and how long blocks of others stay.

Kernels that end may leave their SMs block by block. A block that stays while a launch arrives keeps
it from an SM, or keeps the configuration of shared memory. So what is drawn are SMs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from tbsched.advice.together.ranks.room import Stuck
from tbsched.advice.together.ranks.standstill import Standstill
from tbsched.advice.together.ranks.work import LaunchOrder, members
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.arrays import Float64Array, Int32Array
from tbsched.program.sequence import Launch, Sequence, with_launches
from tbsched.traces.trace import Trace

TimedProgram: TypeAlias = tuple[Sequence, list[float]]  # a program, and delays of its calls
BlockDurations: TypeAlias = list[
    list[float]
]  # of each launch the durations of its blocks; empty: it has none

UNEVEN = 0.05  # share of its duration by which a block stays longer: GPUs end none together
_FOREVER = 100.0  # times the time between two arrivals
_MAX_ROUNDS = 4  # other durations change where later blocks are
_STRIDES = (1, 1, 2, 3, 4, 1000)  # all blocks, some with gaps of shared memory between them, or one


@dataclass(frozen=True, slots=True)
class Stay:
    """How long blocks of a kernel stay that ends.

    Attributes:
        sms: the SMs of some blocks.
        there, elsewhere: the steps until which blocks stay on these SMs, and on others.
        every: the first, and every so many-th block of an SM stay.
    """

    sms: frozenset[int]
    there: float
    elsewhere: float
    every: int


@dataclass(frozen=True, slots=True)
class Scene:
    """What happens on one GPU while the launches of a standstill arrive there, one at each step.

    Attributes:
        stays: how long blocks of kernels stay, by number.
        comes: the steps at which hosts call some of these kernels.
        first: the step before the first launch arrives, so that another GPU may be ahead.
        late: whether a launch that waits for a kernel comes late because its host is late. Else a
            block of the kernel stays until then.
        block: which block, as a share of all.
    """

    stays: dict[int, Stay] = field(default_factory=dict)
    comes: dict[int, float] = field(default_factory=dict)
    first: int = 0
    late: bool = False
    block: float = 0.5


@dataclass(frozen=True, slots=True)
class History:
    """Makes programs in which the launches of a standstill arrive in its order.

    Attributes:
        sequence, work, standstill: the program, its order, and what shall happen.
        long: seconds between two arrivals.
    """

    sequence: Sequence
    work: LaunchOrder
    standstill: Standstill
    long: float

    @property
    def endless_launches(self) -> int:
        """Mask of the launches of groups that do not end."""
        return self.work.launches_of(self.standstill.groups)

    def random_scene(
        self, stuck: Stuck, specs: tuple[DeviceSpec, ...], rng: random.Random
    ) -> Scene:
        """Returns random events for the GPU on which launches shall be stuck: which blocks of other
        kernels stay there until which step, and when these come."""
        gpu = self.work.launches[stuck.order[0]].gpu
        first = rng.choice((0, max(len(other.order) for other in self.standstill.stuck)))
        last = first + len(stuck.order)
        same = rng.random() < 0.5
        stays: dict[int, Stay] = {}
        comes = {}
        stay = _random_stay(specs[gpu], first, last, rng)
        for number, launch in enumerate(self.work.launches):
            if launch.gpu != gpu or self.endless_launches >> number & 1:
                continue
            stay = (
                stay if same and rng.random() < 0.8 else _random_stay(specs[gpu], first, last, rng)
            )
            stays[number] = stay
            if number not in stuck.order and rng.random() < 0.2:
                comes[number] = rng.randint(first, last) + 0.25
        return Scene(stays, comes, first, rng.random() < 0.3, rng.random())

    def fitted_durations(
        self, scenes: dict[Stuck, Scene], base: BlockDurations,
        play: Callable[[TimedProgram], Trace],
    ) -> tuple[BlockDurations, Trace]:  # fmt: skip
        """Returns durations of blocks with which blocks end at the steps that the scenes say, and
        the prediction with these durations.

        Args:
            scenes: for each GPU with stuck launches what happens there.
            base: durations of blocks that end as soon as they can.
            play: predicts a program.
        """
        stay = base
        trace = play(self.delayed_program(stay, scenes, ends=False))
        for _ in range(_MAX_ROUNDS):
            longer = self._lengthened(base, scenes, trace)
            if longer == stay:
                break
            stay = longer
            trace = play(self.delayed_program(stay, scenes, ends=False))
        return stay, trace

    def delayed_program(
        self, stay: BlockDurations, scenes: dict[Stuck, Scene], ends: bool = True
    ) -> TimedProgram:
        """Returns the program with other durations of blocks, and the delay of each call in
        seconds, so that launches arrive at the steps of the scenes.

        Args:
            stay: the durations of each launch's blocks, in seconds.
            scenes: for each GPU with stuck launches what happens there.
            ends: whether launches of the standstill end if they find room.
        """
        arrives: dict[int, float] = {}
        for stuck, scene in scenes.items():
            arrives |= scene.comes
            for step, number in enumerate(stuck.order, scene.first + 1):
                if not self._held_up_by(number, stuck, scene):
                    arrives[number] = step
        gaps, clocks, number = [], dict[int, float](), -1
        for event in self.sequence:
            number += isinstance(event, Launch)
            host = getattr(event, "host", 0)
            earliest = arrives.get(number, 0.0) if isinstance(event, Launch) else 0.0
            now = clocks.get(host, 0.0)
            clocks[host] = max(now, self.long * earliest)
            gaps.append(clocks[host] - now)
        if not ends:
            forever = self.long * _FOREVER
            stay = [[forever] * len(row) if self.endless_launches >> k & 1 else row
                    for k, row in enumerate(stay)]  # fmt: skip
        return with_durations(self.sequence, stay), gaps

    def stays_stuck(self, stuck: Stuck, trace: Trace) -> bool:
        """Returns whether in a prediction all launches that shall be stuck lack room even after
        everything has ended that ends."""
        late = self.long * _FOREVER / 2 * 1e9
        return all(
            bool(((trace[k].smid < 0) | (_starts_ns(trace, k) > late)).any())
            for k in members(stuck.waiting)
        )

    def _lengthened(
        self, base: BlockDurations, scenes: dict[Stuck, Scene], trace: Trace
    ) -> BlockDurations:
        """Returns durations with which blocks end at the steps that the scenes say, if they start
        as in a prediction."""
        longer = [list(row) for row in base]
        for stuck, scene in scenes.items():
            until = {}
            for number, stay in scene.stays.items():
                until[number] = _end_steps(trace[number].smid, stay)
            for step, number in enumerate(stuck.order, scene.first + 1):
                before = self._held_up_by(number, stuck, scene)
                if before:
                    row = until.setdefault(before[-1], np.zeros(len(base[before[-1]])))
                    block = int(scene.block * len(row))
                    row[block] = max(row[block], step)
            for number, steps in until.items():
                begin = self._begin_ns(number, trace) / 1e9
                more = np.maximum(0.0, steps * self.long - begin)
                longer[number] = (np.array(base[number]) + more).round(9).tolist()
        return longer

    def _begin_ns(self, number: int, trace: Trace) -> Float64Array:
        """Returns from when the duration of each block of a launch counts, float64 ns (blocks,):
        its start, or when its group has met."""
        launch = self.work.launches[number]
        starts = _starts_ns(trace, number)
        if launch.meets not in self.work.groups:
            return starts
        group = members(self.work.groups[launch.meets])
        return np.full_like(starts, max(_starts_ns(trace, k).max() for k in group))

    def _held_up_by(self, number: int, stuck: Stuck, scene: Scene) -> list[int]:
        """Returns the numbers of the kernels that keep a launch from arriving until they end;
        empty: it arrives when its host calls it."""
        called_later = any(k > number for k in stuck.order[: stuck.order.index(number)])
        if scene.late and not called_later:
            return []
        before = members(self.work.ended_before[number] & ~self.endless_launches)
        gpu = self.work.launches[number].gpu
        return [k for k in before if self.work.launches[k].gpu == gpu]


def durations(work: LaunchOrder, rng: random.Random) -> BlockDurations:
    """Returns random durations of each launch's blocks, which do not end together."""
    return [spread(launch, rng) for launch in work.launches]


def spread(launch: Launch, rng: random.Random, share: float = UNEVEN) -> list[float]:
    """Returns a duration for each block of a launch, in seconds: its own, longer by a random share
    of up to ``share``; empty: it has none."""
    given = launch.block_durations()
    if given is None:
        return []
    longer = np.random.default_rng(rng.getrandbits(32)).random(launch.blocks)
    longer_: list[float] = (given * (1 + share * longer)).tolist()
    return longer_


def with_durations(sequence: Sequence, stay: BlockDurations) -> Sequence:
    """Returns the program with these durations of blocks, a row of seconds for each launch. An
    empty row keeps the launch's own."""
    return with_launches(
        sequence,
        [
            replace(launch, duration=tuple(row)) if row else launch
            for launch, row in zip(sequence.launches, stay, strict=True)
        ],
    )


def _random_stay(spec: DeviceSpec, first: int, last: int, rng: random.Random) -> Stay:
    """Returns random SMs, and the steps until which blocks on them and elsewhere stay."""
    there, elsewhere = (rng.randint(first, last) + 0.5 for _ in range(2))
    elsewhere = rng.choice((0.0, 0.0, elsewhere))
    return Stay(_random_sms(spec, rng), there, elsewhere, rng.choice(_STRIDES))


def _random_sms(spec: DeviceSpec, rng: random.Random) -> frozenset[int]:
    """Returns a random set of SMs: all, some, one of each of some TPCs, or some TPCs of each
    GPC.
    """
    way, per_tpc = rng.randrange(4), spec.sms_per_tpc
    if way == 0:
        return frozenset(range(spec.sms))
    if way == 1 or not spec.gpcs:
        return frozenset(rng.sample(range(spec.sms), rng.randint(1, spec.sms)))
    if way == 2:
        tpcs = rng.sample(range(spec.tpcs), rng.randint(1, spec.tpcs))
        return frozenset(tpc * per_tpc + rng.randrange(per_tpc) for tpc in tpcs)
    count = rng.choice((1, 1, 2, 3))
    tpcs = [tpc for gpc in spec.gpcs for tpc in rng.sample(gpc, min(count, len(gpc)))]
    return frozenset(tpc * per_tpc + k for tpc in tpcs for k in range(per_tpc))


def _end_steps(smid: Int32Array, stay: Stay) -> Float64Array:
    """Returns the step until which each block stays, float64 (blocks,)."""
    order = np.argsort(smid, kind="stable")
    _, first, sm_index = np.unique(smid[order], return_index=True, return_inverse=True)
    before = np.empty(len(smid), int)  # blocks with lower numbers on the same SM
    before[order] = np.arange(len(smid)) - first[sm_index]
    there = np.isin(smid, list(stay.sms)) & (before % stay.every == 0)
    return np.where(there, stay.there, stay.elsewhere)


def _starts_ns(trace: Trace, number: int) -> Float64Array:
    """Returns when the blocks of a launch start, in ns; 0: never."""
    starts = trace[number].start_ns
    assert starts is not None  # a timed sequence has times
    return np.where(trace[number].smid >= 0, starts, 0).astype(float)
