"""The room for a kernel under each choice that its user has."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tbsched.advice.together.capacity import capacity, limiting
from tbsched.advice.together.given import launches_of, with_blocks
from tbsched.advice.together.limits import DRIVER_LIMIT
from tbsched.hardware.assumed import SEVERAL, needs_of, rules_of
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import policy_of, prepared
from tbsched.program.checks import instance, integer, items
from tbsched.program.partition import Partition
from tbsched.program.sequence import Launch, Sequence
from tbsched.progress import each
from tbsched.shown import Shown
from tbsched.traces.placement import DeviceInfo


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to launch the kernel.

    Attributes:
        launch: the kernel, launched so.
        blocks: how many of its blocks fit, and the driver takes in a cooperative launch; every grid
            up to this one does. 0 where none does, or where the device refuses the launch.
        clusters: how many of its clusters.
        threads: how many threads that is in all.
        idle_sms: how many SMs have no block at all.
        limiter: what refuses one block more on most SMs; ``driver_limit``: the driver does, see
            ``Capacity.driver_limit``.
        refused: why the device does not take such a launch at all, else None.

    Example:
        >>> table = tb.capacities(tb.Launch(1, 256, 64), "h200", threads=[256, 1024])
        >>> [(row.launch.threads, row.blocks, row.threads) for row in table]
        [(256, 528, 135168), (1024, 132, 135168)]
    """

    launch: Launch
    blocks: int
    clusters: int
    threads: int
    idle_sms: int
    limiter: str
    refused: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Capacities(Shown):
    """The room for a kernel under each choice; prints as a table.

    Attributes:
        device: the device.
        beside: the launches that are resident already.
        choices: a :class:`Choice` each, those with most blocks first.

    Example:
        >>> table = tb.capacities(tb.Launch(1, 256, 64), "h200", carveouts=[0, 100])
        >>> len(table), table.choices[0].blocks
        (2, 528)
    """

    device: DeviceInfo
    beside: tuple[Launch, ...]
    choices: tuple[Choice, ...]

    @property
    def assumed_rules(self) -> tuple[str, ...]:
        """Which rules the answers rest on that are assumed for the GPU, in words."""
        launches = (*self.beside, *(row.launch for row in self.choices))
        needs = needs_of(launches) if self.beside else needs_of(launches) - {SEVERAL}
        return rules_of(self.device.assumed or (), needs)

    def __iter__(self) -> Iterator[Choice]:
        return iter(self.choices)

    def __len__(self) -> int:
        return len(self.choices)


def capacities(
    launch: Launch,
    device: str | os.PathLike[str] | DeviceSpec,
    *,
    threads: Iterable[int] | None = None,
    carveouts: Iterable[int | None] | None = None,
    clusters: Iterable[int] | None = None,
    beside: Iterable[Launch] | Sequence = (),
    partition: Partition | None = None,
    state: InitialState | None = None,
    policy: str | None = None,
) -> Capacities:
    """Returns how many blocks of a kernel fit for each block size, carveout and cluster size.

    A number of blocks needs no column: every grid up to ``Choice.blocks`` fits.

    Args:
        launch: the kernel. Its registers per thread and its shared memory per block stay.
        threads: threads per block to try; None leaves them as they are.
        carveouts: likewise, in per cent; a None among them is the driver's choice.
        clusters: likewise, blocks per cluster.
        device, beside, partition, state, policy: as for :func:`capacity`.

    Raises:
        TypeError, ValueError: a choice that no device takes; as :func:`capacity`.

    Example:
        >>> kernel = tb.Launch(1, 384, 168, 200 * 1024, name="gemm")
        >>> table = tb.capacities(kernel, "h200", clusters=[1, 2, 4, 8, 16])
        >>> [(row.launch.cluster, row.blocks, row.idle_sms) for row in table]
        [(1, 132, 0), (2, 132, 0), (4, 120, 12), (8, 120, 12), (16, 112, 20)]
    """
    spec = find_device(device)
    instance("capacities", "launch", launch, Launch)
    others = launches_of("capacities", "beside", beside)
    combinations = itertools.product(
        _values("threads", threads, launch.threads, 1024),
        [launch.carveout] if carveouts is None else items("capacities", "carveouts", carveouts),
        _values("clusters", clusters, launch.cluster, 16),
    )

    one_cluster = with_blocks(launch, launch.cluster)

    def choice_of(way: tuple[int, int | None, int]) -> Choice:
        """Returns how many blocks fit with one block size, carveout and cluster size."""
        size, carveout, cluster = way
        candidate = replace(
            one_cluster, blocks=cluster, threads=size, carveout=carveout, cluster=cluster
        )
        try:
            spec.check(Sequence([candidate]))
        except ValueError as error:
            return Choice(candidate, 0, 0, 0, spec.sms, "", str(error).removeprefix("launch 0: "))
        room = capacity(
            candidate, spec, beside=others, partition=partition, state=state, policy=policy
        )
        allowed = room.blocks if room.driver_limit is None else room.driver_limit
        if allowed >= room.blocks:
            blocks, idle, limiter = room.blocks, len(room.idle_sms), limiting(room)
        else:
            # The blocks that the driver does not take are not placed: fewer SMs may be busy.
            blocks, limiter = allowed - allowed % cluster, DRIVER_LIMIT
            taken = room.beside_per_sm.copy()
            np.add.at(taken, room.smid[:blocks], 1)
            idle = int(np.count_nonzero(taken == 0))
        return Choice(candidate, blocks, blocks // cluster, blocks * size, idle, limiter)

    choices = sorted(each(choice_of, combinations, "placing"), key=lambda row: -row.blocks)
    info = prepared(spec, policy_of(spec, policy))[1]
    return Capacities(info, others, tuple(choices))


def _values(field: str, given: Iterable[int] | None, default: int, most: int) -> list[int]:
    """Returns the values of an argument to try, checked; by default the launch's own."""
    if given is None:
        return [default]
    return [
        integer("capacities", field, value, 1, most) for value in items("capacities", field, given)
    ]
