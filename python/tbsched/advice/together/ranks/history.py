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
from tbsched.advice.together.ranks.work import Work, members
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.arrays import Float64Array, Int32Array
from tbsched.program.sequence import Launch, Sequence, with_launches
from tbsched.traces.trace import Trace

Try: TypeAlias = tuple[Sequence, list[float]]  # a program, and delays of its calls
Rows: TypeAlias = list[
    list[float]
]  # of each launch the durations of its blocks; empty: it has none

UNEVEN = 0.05  # share of its duration by which a block stays longer: GPUs end none together
_FOREVER = 100.0  # times the time between two arrivals
_ROUNDS = 4  # other durations change where later blocks are
_EVERY = (1, 1, 2, 3, 4, 1000)  # all blocks, some with gaps of shared memory between them, or one


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
    work: Work
    standstill: Standstill
    long: float

    @property
    def never(self) -> int:
        """The launches of groups that do not end."""
        return self.work.of(self.standstill.groups)

    def scene(self, stuck: Stuck, specs: tuple[DeviceSpec, ...], drawn: random.Random) -> Scene:
        """Draws what happens on the GPU of some launches."""
        gpu = self.work.launches[stuck.order[0]].gpu
        first = drawn.choice((0, max(len(other.order) for other in self.standstill.stuck)))
        last = first + len(stuck.order)
        same = drawn.random() < 0.5
        stays: dict[int, Stay] = {}
        comes = {}
        stay = _stay(specs[gpu], first, last, drawn)
        for number, launch in enumerate(self.work.launches):
            if launch.gpu != gpu or self.never >> number & 1:
                continue
            stay = stay if same and drawn.random() < 0.8 else _stay(specs[gpu], first, last, drawn)
            stays[number] = stay
            if number not in stuck.order and drawn.random() < 0.2:
                comes[number] = drawn.randint(first, last) + 0.25
        return Scene(stays, comes, first, drawn.random() < 0.3, drawn.random())

    def settled(
        self, scenes: dict[Stuck, Scene], base: Rows, play: Callable[[Try], Trace]
    ) -> tuple[Rows, Trace]:
        """Returns durations with which blocks end when they should, and where blocks are then.

        ``base``: durations of blocks that end as soon as they can.
        """
        stay = base
        trace = play(self.program(stay, scenes, ends=False))
        for _ in range(_ROUNDS):
            longer = self._longer(base, scenes, trace)
            if longer == stay:
                break
            stay = longer
            trace = play(self.program(stay, scenes, ends=False))
        return stay, trace

    def program(self, stay: Rows, scenes: dict[Stuck, Scene], ends: bool = True) -> Try:
        """Returns the program with these durations, and delays of its calls.

        Unless ``ends``, launches of the standstill stay even if they find room.
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
            stay = [[forever] * len(row) if self.never >> k & 1 else row
                    for k, row in enumerate(stay)]  # fmt: skip
        return with_durations(self.sequence, stay), gaps

    def stays_stuck(self, stuck: Stuck, trace: Trace) -> bool:
        """Returns whether launches find no room although all that ends has ended."""
        late = self.long * _FOREVER / 2 * 1e9
        return all(
            bool(((trace[k].smid < 0) | (_starts(trace, k) > late)).any())
            for k in members(stuck.waiting)
        )

    def _longer(self, base: Rows, scenes: dict[Stuck, Scene], trace: Trace) -> Rows:
        """Returns durations so that blocks, if they start as in a trace, end when they should."""
        found = [list(row) for row in base]
        for stuck, scene in scenes.items():
            until = {}
            for number, stay in scene.stays.items():
                until[number] = _until(trace[number].smid, stay)
            for step, number in enumerate(stuck.order, scene.first + 1):
                before = self._held_up_by(number, stuck, scene)
                if before:
                    row = until.setdefault(before[-1], np.zeros(len(base[before[-1]])))
                    block = int(scene.block * len(row))
                    row[block] = max(row[block], step)
            for number, steps in until.items():
                begin = self._begins(number, trace) / 1e9
                more = np.maximum(0.0, steps * self.long - begin)
                found[number] = (np.array(base[number]) + more).round(9).tolist()
        return found

    def _begins(self, number: int, trace: Trace) -> Float64Array:
        """Returns when the durations of blocks begin."""
        launch = self.work.launches[number]
        starts = _starts(trace, number)
        if launch.meets not in self.work.groups:
            return starts
        group = members(self.work.groups[launch.meets])
        return np.full_like(starts, max(_starts(trace, k).max() for k in group))

    def _held_up_by(self, number: int, stuck: Stuck, scene: Scene) -> list[int]:
        """Returns kernels of its GPU that end, for which a launch waits; none: its host is late."""
        called_later = any(k > number for k in stuck.order[: stuck.order.index(number)])
        if scene.late and not called_later:
            return []
        before = members(self.work.ended_before[number] & ~self.never)
        gpu = self.work.launches[number].gpu
        return [k for k in before if self.work.launches[k].gpu == gpu]


def durations(work: Work, drawn: random.Random) -> Rows:
    """Returns durations of blocks that do not end together."""
    return [spread(launch, drawn) for launch in work.launches]


def spread(launch: Launch, drawn: random.Random, share: float = UNEVEN) -> list[float]:
    """Returns durations of blocks that are longer by up to a share; empty: it has none."""
    given = launch.block_durations()
    if given is None:
        return []
    longer = np.random.default_rng(drawn.getrandbits(32)).random(launch.blocks)
    found: list[float] = (given * (1 + share * longer)).tolist()
    return found


def with_durations(sequence: Sequence, stay: Rows) -> Sequence:
    """Returns a program with other durations of launches; none: as they are."""
    return with_launches(
        sequence,
        [
            replace(launch, duration=tuple(row)) if row else launch
            for launch, row in zip(sequence.launches, stay, strict=True)
        ],
    )


def _stay(spec: DeviceSpec, first: int, last: int, drawn: random.Random) -> Stay:
    there, elsewhere = (drawn.randint(first, last) + 0.5 for _ in range(2))
    elsewhere = drawn.choice((0.0, 0.0, elsewhere))
    return Stay(_some_sms(spec, drawn), there, elsewhere, drawn.choice(_EVERY))


def _some_sms(spec: DeviceSpec, drawn: random.Random) -> frozenset[int]:
    """Draws SMs: all, or so many, or one of each of some TPCs, or some TPCs of each GPC."""
    way, per_tpc = drawn.randrange(4), spec.sms_per_tpc
    if way == 0:
        return frozenset(range(spec.sms))
    if way == 1 or not spec.gpcs:
        return frozenset(drawn.sample(range(spec.sms), drawn.randint(1, spec.sms)))
    if way == 2:
        tpcs = drawn.sample(range(spec.tpcs), drawn.randint(1, spec.tpcs))
        return frozenset(tpc * per_tpc + drawn.randrange(per_tpc) for tpc in tpcs)
    count = drawn.choice((1, 1, 2, 3))
    tpcs = [tpc for gpc in spec.gpcs for tpc in drawn.sample(gpc, min(count, len(gpc)))]
    return frozenset(tpc * per_tpc + k for tpc in tpcs for k in range(per_tpc))


def _until(smid: Int32Array, stay: Stay) -> Float64Array:
    """Returns the step until which each block stays."""
    order = np.argsort(smid, kind="stable")
    _, first, own = np.unique(smid[order], return_index=True, return_inverse=True)
    before = np.empty(len(smid), int)  # blocks with lower numbers on the same SM
    before[order] = np.arange(len(smid)) - first[own]
    there = np.isin(smid, list(stay.sms)) & (before % stay.every == 0)
    return np.where(there, stay.there, stay.elsewhere)


def _starts(trace: Trace, number: int) -> Float64Array:
    """Returns when blocks start, in ns; those that never do: 0."""
    starts = trace[number].start_ns
    assert starts is not None  # a timed sequence has times
    return np.where(trace[number].smid >= 0, starts, 0).astype(float)
