"""How many blocks of a launch fit beside others, on which SMs, and what binds each class of SMs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from tbsched.advice.together.given import held, launches_of
from tbsched.advice.together.limits import NO_CLUSTER, Limit, limits_of
from tbsched.hardware.assumed import needs_of, rules_of
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import policy_of, prepared
from tbsched.prediction.tables import cooperative_limit
from tbsched.prediction.together.room import free_room
from tbsched.program.arrays import HoldsArrays, Int32Array
from tbsched.program.checks import instance
from tbsched.program.partition import Partition
from tbsched.program.sequence import Launch, Sequence
from tbsched.shown import Shown
from tbsched.traces.placement import DeviceInfo


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Capacity(Shown, HoldsArrays):
    """How many blocks of a launch fit; prints as a table with a row per class of SMs.

    Attributes:
        device: the device.
        launch: what was asked about. The number of its blocks does not change the answer.
        beside: the launches that are resident already, in order of arrival.
        state: the latent state of the GPU before they arrived.
        smid: int32 (blocks,), the SM of each block that fits, in block order.
        per_sm: int32 (sms,), how many blocks each SM takes.
        beside_per_sm: int32 (sms,), how many blocks of the other launches it holds.
        limits: a :class:`Limit` per class of SMs, those with most SMs first.
        driver_limit: the most blocks that a cooperative launch may have. The driver counts them for
            an idle GPU with the least shared memory that the carveout allows. None: the launch is
            not cooperative.

    Example:
        >>> found = tb.capacity(tb.Launch(64, 384, 168), "h200", beside=[tb.Launch(24, 512, 96)])
        >>> found.blocks, found.fits, len(found.idle_sms)
        (108, True, 0)
    """

    device: DeviceInfo
    launch: Launch
    beside: tuple[Launch, ...]
    state: InitialState
    smid: Int32Array
    per_sm: Int32Array
    beside_per_sm: Int32Array
    limits: tuple[Limit, ...]
    driver_limit: int | None = None

    @property
    def blocks(self) -> int:
        """How many blocks fit, whole clusters."""
        return len(self.smid)

    @property
    def clusters(self) -> int:
        """How many clusters fit; blocks where the launch has no clusters."""
        return len(self.smid) // self.launch.cluster

    @property
    def assumed_rules(self) -> tuple[str, ...]:
        """Returns which rules the answer rests on that are assumed for the GPU, in words.

        Example:
            >>> tb.capacity(tb.Launch(1, 384, 168), "a100").assumed_rules
            ('layout of shared memory',)
        """
        return rules_of(self.device.assumed or (), needs_of((*self.beside, self.launch)))

    @property
    def fits(self) -> bool:
        """Returns whether the whole launch fits, and the driver takes it.

        Example:
            >>> grid = tb.Launch(1100, 128, 32, carveout=0, cooperative=True)
            >>> found = tb.capacity(grid, "h200")
            >>> found.blocks, found.driver_limit, found.fits
            (2112, 1056, False)
        """
        allowed = self.blocks if self.driver_limit is None else self.driver_limit
        return self.launch.blocks <= min(self.blocks, allowed)

    @property
    def idle_sms(self) -> tuple[int, ...]:
        """Returns the SMs that have no block at all, although as many blocks are placed as fit.

        Example:
            >>> gemm = tb.Launch(132, 384, 168, 200 * 1024, cluster=4)
            >>> len(tb.capacity(gemm, "h200").idle_sms)
            12
        """
        return tuple(np.flatnonzero(self.per_sm + self.beside_per_sm == 0).tolist())


def capacity(
    launch: Launch,
    device: str | os.PathLike[str] | DeviceSpec,
    *,
    beside: Iterable[Launch] | Sequence = (),
    partition: Partition | None = None,
    state: InitialState | None = None,
    policy: str | None = None,
) -> Capacity:
    """Returns how many blocks of a launch fit now, on which SMs, and what binds each class of SMs.

    Occupancy calculators look at one kernel on an empty GPU. Here other kernels are resident, and
    SMs differ: what refuses a block on one SM need not be what refuses it on another.

    Args:
        launch: the kernel. It may have any number of blocks: the answer is how many fit, and
            :attr:`Capacity.fits` whether its own do.
        device: a name, the path of a ``.toml`` file, or a spec.
        beside: the launches that are resident already. They arrived in this order and stay.
        partition: the SMs that the launch may use; None is what the launch says itself.
        state: the GPU's latent state before anything arrived; None is the first. It decides which
            SMs are taken. With clusters it can decide how many blocks fit, too.
        policy: as for :func:`tbsched.predict`.

    Raises:
        TypeError, ValueError: a launch that the device refuses, or one of ``beside`` that does not
            become resident whole; names the launch.

    Example:
        >>> schedulers = tb.Launch(16, 128, 32, name="schedulers")
        >>> workers = tb.Launch(128, 256, 168, 100 * 1024, name="workers")
        >>> found = tb.capacity(workers, "h200", beside=[schedulers])
        >>> found.blocks, found.fits
        (116, False)
        >>> [(len(row.sms), row.beside, row.blocks, row.cause) for row in found.limits]
        [(116, 0, 1, 'registers'), (16, 1, 0, 'configuration')]
    """
    spec = find_device(device)
    others = launches_of("capacity", "beside", beside)
    instance("capacity", "launch", launch, Launch)
    if partition is not None:
        launch = replace(launch, partition=instance("capacity", "partition", partition, Partition))
    policy = policy_of(spec, policy)
    _, info, _ = prepared(spec, policy)
    if state is None:
        state = spec.initial_states(policy)[0]
    (*first, asked), _ = held([*others, launch])
    room = free_room(spec, policy, state, first, asked)
    causes = [(NO_CLUSTER,) if every[0] == "none" else every for every in room.causes]
    limits = limits_of(causes, room.per_sm, room.beside_per_sm)
    allowed = cooperative_limit(launch, spec) if launch.cooperative else None
    return Capacity(
        info, launch, others, state, room.smid, room.per_sm, room.beside_per_sm, limits, allowed
    )


def limiting(capacity_: Capacity) -> str:
    """Returns what refuses one block more on most SMs that the launch may use."""
    causes = Counter[str]()
    for row in capacity_.limits:
        if row.cause != "partition":
            causes[row.cause] += len(row.sms)
    return causes.most_common(1)[0][0] if causes else "partition"
