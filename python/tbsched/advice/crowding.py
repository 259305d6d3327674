"""Bounds on the time that launches wait for room, valid for any order.

They count blocks and add up durations. So they hold whichever block ends first, and whichever SM a
block goes to. ``docs/explanation/bounds.md`` has the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.residents import Residents

# A whole number may come out less by this in floating point.
ROUNDING_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Durations:
    """How long the blocks of a launch keep their room, in ns: values, ascending, and how often."""

    values: Int64Array
    counts: Int64Array

    @classmethod
    def of(cls, durations_ns: Int64Array, blocks: int, exit_ns: int) -> Durations:
        """Returns the durations of a launch's blocks, given one for all blocks or one per block."""
        if len(durations_ns) == 1:
            return cls(durations_ns + exit_ns, np.array([blocks]))
        values, counts = np.unique(durations_ns, return_counts=True)
        return cls(values + exit_ns, counts)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return int(self.counts.sum())

    @property
    def longest(self) -> int:
        """Duration of the longest block, in ns."""
        return int(self.values[-1])

    @property
    def total(self) -> int:
        """Sum of all blocks' durations, in ns."""
        return int(self.values @ self.counts)


def min_span_ns(durations: Durations, at_once: int) -> int:
    """Returns a lower bound of a launch's time in ns, if ``at_once`` blocks can run together.

    A place that several blocks have one after the other is kept by each of them. Of the k * n + 1
    longest blocks k + 1 must share one of n places.
    """
    rounds = -(-durations.blocks // at_once)
    if rounds == 1:
        return durations.longest
    descending = np.repeat(durations.values[::-1], durations.counts[::-1])
    before = np.concatenate([[0], np.cumsum(descending)])
    last = at_once * np.arange(rounds) + 1
    shared = before[last] - before[last - np.arange(1, rounds + 1)]
    return max(int(shared.max()), durations.total // at_once)


def max_full_ns(
    durations: list[Durations], weights: Float64Array, full: float, spared: float
) -> int:
    """Returns the longest time in ns for which the weights of the blocks that run can add up to
    ``full``, if each block runs once.

    Args:
        durations: of each launch.
        weights: of a block of each launch.
        full: more than 0.
        spared: the weight of a block that is not among those that run.
    """
    weight = sum(w * k.blocks for w, k in zip(weights, durations, strict=True)) - spared
    # All blocks that run at one time have ended after the longest of them; then others run.
    rounds = math.floor(weight / full * (1 + ROUNDING_SLACK) + ROUNDING_SLACK)
    if rounds == 0:
        return 0
    values = np.concatenate([k.values for k in durations])
    counts = np.concatenate([k.counts for k in durations])
    weighing = np.concatenate([w * k.counts for w, k in zip(weights, durations, strict=True)])
    order = np.argsort(-values, kind="stable")
    values, counts, weighing = values[order], counts[order], weighing[order]
    taken = np.minimum(np.cumsum(counts), rounds)
    by_rounds = int(np.diff(taken, prepend=0) @ values)
    return min(by_rounds, _max_time_by_area_ns(values, weighing, full))


def _max_time_by_area_ns(values: Int64Array, weights: Float64Array, full: float) -> int:
    """Returns the longest t, in ns, at which the sum of weight * min(duration, t) over all blocks
    is ``full`` * t at least."""
    area = float(values @ weights)
    longer = 0.0  # weight of the blocks that run longer than t
    for value, block_weight in zip(values.tolist(), weights.tolist(), strict=True):
        if longer < full and area >= (full - longer) * value:
            break
        area -= value * block_weight
        longer += block_weight
    else:
        return 0
    return math.floor(area / (full - longer) * (1 + ROUNDING_SLACK))


class RoomBounds:
    """Room that a program's launches take of an SM, as the policy counts it, for bounds of waits.

    Attributes:
        at_once: of each launch, more of its blocks than this never run at once.
        shares: float (launches, resources), what a block takes of all that an SM has.
        sms: of each launch, the SMs that it may use.
    """

    def __init__(self, launches: tuple[Launch, ...], spec: DeviceSpec, policy: str | None) -> None:
        self._launches = launches
        self._spec = spec
        self._policy = policy
        residents = self._residents(launches)
        self._limits = limits = residents.limits
        self._shared_memory = residents.shared_memory.astype(np.int64)
        warps = np.array([-(-launch.threads // 32) for launch in launches])
        registers = residents.registers_per_warp.astype(np.int64)
        parts = limits.processing_blocks
        taken = [np.ones_like(warps), warps, warps * registers, self._shared_memory]
        has = [limits.block_slots, parts * limits.warp_slots, parts * limits.registers,
               limits.shared_memory]  # fmt: skip
        self.shares = np.stack([t / h for t, h in zip(taken, has, strict=True)], axis=1)
        everywhere = frozenset(range(spec.sms))
        self.sms = [
            everywhere if launch.partition is None else frozenset(launch.partition.sms)
            for launch in launches
        ]
        fits = np.array([h // np.maximum(t, 1) for t, h in zip(taken, has, strict=True)]).min(0)
        self.at_once = [int(f) * len(own) for f, own in zip(fits, self.sms, strict=True)]
        # Warps of a block on the processing block that has most of them.
        fullest = -(-warps // parts)
        self._whole = np.array([one.cluster > 1 or one.cooperative for one in launches])
        self._largest = np.array([one.carveout == 100 for one in launches])
        kinds: dict[Launch, int] = {}
        self._kinds = np.array([kinds.setdefault(_room_of(one), len(kinds)) for one in launches])
        self._in_part = np.stack([taken[0], fullest, fullest * registers], axis=1)
        self._part_has = (limits.block_slots, limits.warp_slots, limits.registers)

    def weights(
        self, near: list[int], everyone: list[int], sms: frozenset[int]
    ) -> tuple[list[int], Float64Array, float]:
        """Returns weights of blocks, and their least sum while some launch finds no room.

        Args:
            near: the launch, and all others that can run on these SMs meanwhile.
            everyone: those, and all that can run elsewhere meanwhile.
            sms: all that the launch may use.

        Returns:
            launches, the weight of a block of each, and the least sum of the weights of running
            blocks while no block of some launch of ``near`` finds room on these SMs.
        """
        mechanisms = self._spec.mechanisms
        if self._whole[near].any():
            return everyone, np.ones(len(everyone)), 1.0
        each = np.ones(len(near))
        memory = self._common_configuration(near)
        if memory is None and mechanisms.configuration_per_tpc:
            if len(sms) < self._spec.sms:
                return everyone, np.ones(len(everyone)), 1.0
            return near, each, float(self._spec.tpcs)
        in_turn = mechanisms.strict_round_robin or self._limits.processing_blocks == 1
        if memory is None or mechanisms.registers != "pooled" or not in_turn:
            return near, each, float(len(sms))
        heaviest = np.maximum(self._weights_by_slots(near), self._weights_by_memory(near, memory))
        return near, np.minimum(heaviest, each), float(len(sms))

    @property
    def keeps_out(self) -> bool:
        """Whether a block may set an SM to a configuration without room for another launch."""
        return self._common_configuration(list(range(len(self._launches)))) is None

    def _weights_by_slots(self, launches: list[int]) -> Float64Array:
        """Returns the share of an SM that a block of each launch takes, by slots and registers."""
        taken = self._in_part[launches]
        weights = np.zeros(len(launches))
        for column, has in zip(taken.T, self._part_has, strict=True):
            unit = math.gcd(*column.tolist())
            least = -(-(has - int(column.max()) + 1) // unit) * unit
            weights = np.maximum(weights, column / least)
        return weights

    def _weights_by_memory(self, launches: list[int], memory: int) -> Float64Array:
        """Returns the share of an SM that a block of each launch takes, by shared memory."""
        needed = self._shared_memory[launches]
        if not needed.any():
            return np.zeros(len(launches))
        gap = int(needed.max()) - 1
        gaps = 0 if self._spec.mechanisms.shared_memory == "pooled" else gap
        return np.where(needed > 0, needed + gaps, 0) / (memory - gap)

    def _common_configuration(self, launches: list[int]) -> int | None:
        """Returns the bytes of shared memory an SM has for all these launches; None: it varies."""
        if not self._spec.mechanisms.shared_memory_configuration:
            return self._limits.shared_memory
        if self._largest[launches].all():
            return self._limits.shared_memory
        if (self._kinds[launches] == self._kinds[launches[0]]).all():
            return int(self._residents([self._launches[launches[0]]]).configured.max())
        return None

    def _residents(self, launches: Iterable[Launch]) -> Residents:
        """Returns the predicted residents of an SM, given a block of each launch."""
        kinds = [_room_of(launch) for launch in launches]
        return predict(Sequence(kinds), self._spec, self._policy).residents()


def _room_of(launch: Launch) -> Launch:
    """Returns a launch of one block or cluster with only the fields that decide its room."""
    return Launch(
        launch.cluster, launch.threads, launch.registers, launch.shared_memory,
        carveout=launch.carveout, cluster=launch.cluster,
    )  # fmt: skip
