"""Random groups of launches whose blocks wait for each other, near the edge of what fits at once.

There are 2 or 3 launches, or 4 to 6: clusters, carveouts, partitions, shared memory, cooperative
launches, priorities; now and then one or two of them do not wait for the others, and all their
blocks, some or none are gone when the last launch comes.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import tbsched as tb
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.partition import Partition

KB = 1024
THREADS = (32, 64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024)
REGISTERS = (16, 24, 32, 40, 48, 64, 80, 96, 128, 168, 255)
CLUSTERS = (1, 1, 1, 1, 1, 2, 4, 8, 16)
CARVEOUTS = (None, None, 0, 25, 50, 100)
PRIORITIES = (0, -1, -2)
FOREVER, STEP = 1.0, 1e-3  # seconds: of blocks that stay; between two launches
SPLITS = (16, 32, 64)  # fewest SMs of a partition


@dataclass(frozen=True, slots=True)
class Group:
    """Launches that meet, and perhaps some that do not wait for them.

    Attributes:
        number: of the draw.
        launches: in the order in which the last one was drawn near the edge.
        gone: of each launch that is in no group, its number, and which of its blocks are gone when
            the last launch of an order comes.
    """

    number: int
    launches: tuple[tb.Launch, ...]
    gone: dict[int, tuple[bool, ...]]

    def orders(self) -> Iterator[tuple[int, ...]]:
        """All orders of arrival, by the numbers of the launches."""
        return itertools.permutations(range(len(self.launches)))

    @property
    def timed(self) -> bool:
        """Whether some blocks of a launch leave and others stay, which takes durations."""
        return any(len(set(gone)) > 1 for gone in self.gone.values())

    def arriving(self, order: tuple[int, ...]) -> tb.Sequence:
        launches = [self.launches[number] for number in order]
        last = len(order) - 1
        if self.timed:
            launches = [replace(launch, duration=FOREVER) for launch in launches]
            for place, number in enumerate(order):
                leaves = (last - place - 0.5) * STEP if place < last else FOREVER
                stay = tuple(leaves if gone else FOREVER for gone in self.gone.get(number, ()))
                if stay:
                    launches[place] = replace(launches[place], duration=stay)
            return tb.Sequence(launches)
        gone = [place for place in range(last) if all(self.gone.get(order[place], (False,)))]
        return tb.Sequence([*launches[:-1], *map(tb.Release, gone), launches[-1]])

    @property
    def issue_times(self) -> tuple[float, ...] | None:
        """When the launches are called."""
        return tuple(STEP * k for k in range(len(self.launches))) if self.timed else None

    def meeting(self, order: tuple[int, ...]) -> list[list[int]]:
        """The groups of that sequence: one."""
        return [[place for place, number in enumerate(order) if number not in self.gone]]


def random_groups(
    seed: int, count: int, spec: DeviceSpec, *, two_outside: bool = False
) -> Iterator[Group]:
    """So many groups; the first of them do not depend on how many there are."""
    for number in range(count):
        yield random_group(seed, number, spec, two_outside=two_outside)


def random_group(seed: int, number: int, spec: DeviceSpec, *, two_outside: bool = False) -> Group:
    """One of the draw.

    Args:
        seed, number, spec: which draw, which of it, and the GPU.
        two_outside: it has three launches of which two do not wait for the other one.
    """
    rng = random.Random(f"{seed} {number}")
    launches = _launches(rng, spec, 3 if two_outside else rng.choice((2, 2, 2, 3, 3)))
    outside: list[int] = []
    if two_outside:
        outside = rng.sample(range(len(launches)), 2)
    elif rng.random() < 0.3:
        outside = [rng.randrange(len(launches))]
    gone = {}
    for launch in outside:
        share = rng.choice((0.0, 0.5, 0.9, 1.0))
        gone[launch] = tuple(rng.random() < share for _ in range(launches[launch].blocks))
    return Group(number, launches, gone)


def larger_group(seed: int, number: int, spec: DeviceSpec, outsiders: int) -> Group:
    """Four to six launches, of which so many do not wait for the others."""
    rng = random.Random(f"more {seed} {number}")
    launches = _launches(rng, spec, rng.choice((4, 5, 6)))
    outside = rng.sample(range(len(launches)), outsiders)
    return Group(number, launches, dict.fromkeys(outside, ()))


def _launches(rng: random.Random, spec: DeviceSpec, size: int) -> tuple[tb.Launch, ...]:
    places = random_places(rng, spec)
    carveouts = rng.choice(((None,), (100,), CARVEOUTS, CARVEOUTS))
    priorities = rng.choice(((0,), (0,), (0,), PRIORITIES))
    launches: list[tb.Launch] = []
    while len(launches) < size:
        kernel = random_kernel(rng, rng.choice(places), rng.choice(carveouts))
        alone = fitting(spec, kernel)
        if alone == 0:
            continue
        blocks = rng.uniform(0.05, 1.2 / (size - 1)) * alone
        if len(launches) == size - 1:
            steps = rng.choice((0, 0, 0, -1, -2, 1, 1, 1, 1, 2))
            blocks = fitting(spec, kernel, *launches) + steps * kernel.cluster
        launch = replace(with_blocks(kernel, blocks), priority=rng.choice(priorities))
        # A cooperative launch that does not fit the idle GPU is refused.
        cooperative = replace(launch, cooperative=True)
        fits = rng.random() < 0.08 and _placed(spec, cooperative)
        launches.append(cooperative if fits else launch)
    return tuple(launches)


def random_places(rng: random.Random, spec: DeviceSpec) -> tuple[Partition | None, ...]:
    """Where launches go: mostly to the whole GPU."""
    if rng.random() < 0.85:
        return (None,)
    groups, rest = tb.split_sms(spec, rng.choice(SPLITS))
    return (None, groups[0], groups[-1], rest)


def random_kernel(
    rng: random.Random, partition: Partition | None, carveout: int | None
) -> tb.Launch:
    threads = rng.choice(THREADS)
    registers = rng.choice([count for count in REGISTERS if threads * count <= 64 * KB])
    shared = rng.choice((0, 0, 0, rng.randrange(48 * KB), rng.randrange(227 * KB)))
    cluster = rng.choice(CLUSTERS)
    return tb.Launch(
        cluster, threads, registers, shared, cluster=cluster, carveout=carveout,
        partition=partition,
    )  # fmt: skip


def with_blocks(kernel: tb.Launch, blocks: float) -> tb.Launch:
    """Whole clusters, at least one."""
    return replace(kernel, blocks=max(1, round(blocks / kernel.cluster)) * kernel.cluster)


def fitting(spec: DeviceSpec, kernel: tb.Launch, *before: tb.Launch) -> int:
    """How many blocks of a kernel are placed behind these, as predicted, if it has many."""
    many = 33 * spec.sms // kernel.cluster * kernel.cluster
    return _placed(spec, *before, replace(kernel, blocks=many))


def _placed(spec: DeviceSpec, *launches: tb.Launch) -> int:
    """How many blocks of the last launch; 0 of one that is refused."""
    try:
        return tb.predict(tb.Sequence(launches), spec)[-1].placed
    except ValueError:
        return 0
