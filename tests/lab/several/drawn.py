"""Random programs over several GPUs whose blocks meet, as rows that JSON can hold.

A program has 1 to 5 groups, which the GPUs issue in equal or different orders, in shared or
separate streams. Between them are short kernels, and now and then a host call that makes a GPU's
host late. Each GPU has one host. Near the limit, the groups of a GPU together take about as much
room as there is.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable
from typing import TypeAlias

import tbsched as tb
from gpu.together.groups import fitting
from tbsched.hardware.spec import DeviceSpec

# [gpu, stream, blocks, threads, registers, shared memory, cluster, group, ns] of a launch; group -1
# meets nobody. [gpu, ns] of a host call.
Row: TypeAlias = list[int]
COLUMNS = ["gpu", "stream", "blocks", "threads", "registers", "shared", "cluster", "group", "ns"]

SHAPES = (64, 128, 256, 512, 544, 1024)
REGISTERS = (16, 32, 64)
SHARED = (0, 0, 8 << 10, 16 << 10, 48 << 10, 100 << 10, 200 << 10)
CLUSTERS = (1, 1, 1, 1, 2, 4)
NEAR = (0.7, 0.95, 1.0, 1.0, 1.0, 1.05, 1.3)  # of a GPU's room, all groups together
SPREAD = 0.3  # share of its duration by which a block may stay longer


def random_program(seed: int, number: int, spec: DeviceSpec, *, gpus: int, near: bool) -> list[Row]:
    """One of a draw, for GPUs of a kind."""
    rng = random.Random(f"{seed} {number} {near}")
    count = rng.randint(1, 5)
    shapes = [_shape(rng, spec) for _ in range(count)]
    total = rng.choice(NEAR) if near else rng.uniform(0.2, 1.5)
    weights = [rng.uniform(0.3, 1) for _ in range(count)]
    shares = [total * weight / sum(weights) for weight in weights]
    streams = [rng.choice((k, k, rng.randrange(2))) for k in range(count)]
    if rng.random() < 0.15:
        streams = [0] * count
    orders = _orders(rng, count, gpus)
    missing = rng.choice((0.0, 0.0, 0.2))
    rows = []
    for gpu, order in enumerate(orders):
        own: list[Row] = []
        for group in order:
            if rng.random() < 0.35:
                own.append(_short(rng, spec, gpu, rng.choice((streams[group], 10, 11, 12))))
            if gpu and rng.random() < missing:
                continue
            blocks = _blocks(rng, spec, shapes[group], min(shares[group], 1.0))
            own.append([gpu, streams[group], blocks, *shapes[group], group, _ns(rng, 5, 60)])
        if own and rng.random() < 0.3:
            own.insert(rng.randrange(len(own)), [gpu, _ns(rng, 10, 800)])
        rows += own
    return rows


def sequence_of(
    rows: Iterable[Row], spread: bool = False, stay: list[list[int]] | None = None
) -> tb.Sequence:
    """Returns a program.

    Args:
        rows: of it.
        spread: whether blocks of a launch stay for different times, drawn always alike.
        stay: of each launch how many ns its blocks stay; None: as the rows say.
    """
    events: list[tb.Launch | tb.HostCall] = []
    launches = 0
    for row in rows:
        if is_call(row):
            gpu, ns = row
            events.append(tb.HostCall("late", duration=ns / 1e9, host=gpu, gpu=gpu))
            continue
        gpu, stream, blocks, threads, registers, shared, cluster, group, ns = row
        rng = random.Random(launches)
        several = tuple(round(ns * (1 + SPREAD * rng.random())) / 1e9 for _ in range(blocks))
        if stay is not None:
            several = tuple(each / 1e9 for each in stay[launches])
        launches += 1
        launch = tb.Launch(
            blocks, threads, registers, shared, cluster=cluster, stream=stream, gpu=gpu, host=gpu,
            non_blocking=True, duration=several if spread or stay is not None else ns / 1e9,
            meets=None if group < 0 else f"group {group}",
        )  # fmt: skip
        events.append(launch)
    return tb.Sequence(events)


def rows_of(program: tb.Sequence) -> list[Row]:
    """Returns the rows of a program whose blocks of a launch stay equally long."""
    rows = []
    for event in program:
        if isinstance(event, tb.HostCall):
            rows.append([event.gpu, round(event.duration * 1e9)])
            continue
        assert isinstance(event, tb.Launch)
        assert isinstance(event.duration, float)
        assert isinstance(event.stream, int)
        group = -1 if event.meets is None else int(event.meets.removeprefix("group "))
        rows.append(
            [
                event.gpu, event.stream, event.blocks, event.threads, event.registers,
                event.shared_memory, event.cluster, group, round(event.duration * 1e9),
            ]
        )  # fmt: skip
    return rows


def is_call(row: Row) -> bool:
    """Returns whether a row is a host call."""
    return len(row) == 2


def with_delays(rows: list[Row], delays: Iterable[int]) -> list[Row]:
    """Returns a program with host calls before some events, of so many ns for each event."""
    late: list[Row] = []
    for row, ns in zip(rows, delays, strict=True):
        late += [[row[0], ns]] if ns else []
        late.append(row)
    return late


def random_delays(rows: list[Row], rng: random.Random) -> list[int]:
    """Returns random delays of hosts, in ns for each event; sometimes of one host alone."""
    steps = [5_000, 20_000, 60_000, 200_000, 1_000_000]
    steps += [row[-1] + 5_000 for row in rows]  # what comes just after another has ended
    often = rng.choice((0.1, 0.3, 0.6))
    delays = [rng.choice(steps) if rng.random() < often else 0 for _ in rows]
    gpus = sorted({row[0] for row in rows})
    late = rng.choice([-1, *gpus])
    if late >= 0:
        first = next(k for k, row in enumerate(rows) if row[0] == late)
        delays[first] = rng.choice(steps)
    return delays


def _shape(rng: random.Random, spec: DeviceSpec) -> tuple[int, int, int, int]:
    """Threads, registers, shared memory and cluster size of a kernel that fits the GPU."""
    while True:
        cluster = min(rng.choice(CLUSTERS), spec.max_cluster)
        found = (rng.choice(SHAPES), rng.choice(REGISTERS), rng.choice(SHARED), cluster)
        if _room(spec, found):
            return found


@functools.cache
def _room(spec: DeviceSpec, shape: tuple[int, int, int, int]) -> int:
    """How many blocks of a kernel the idle GPU holds."""
    threads, registers, shared, cluster = shape
    return fitting(spec, tb.Launch(cluster, threads, registers, shared, cluster=cluster))


def _orders(rng: random.Random, count: int, gpus: int) -> list[list[int]]:
    """The order of the groups on each GPU."""
    first = rng.sample(range(count), count)
    way = rng.choice(("equal", "equal", "two turned", "any"))
    orders = [list(first) for _ in range(gpus)]
    if way == "two turned" and count > 1:
        k = rng.randrange(count - 1)
        orders[-1][k : k + 2] = reversed(orders[-1][k : k + 2])
    if way == "any":
        orders = [rng.sample(range(count), count) for _ in range(gpus)]
    return orders


def _blocks(
    rng: random.Random, spec: DeviceSpec, shape: tuple[int, int, int, int], share: float
) -> int:
    """About so much of what the GPU holds: whole clusters, and at least two blocks."""
    cluster = shape[-1]
    clusters = round(share * _room(spec, shape) / cluster) + rng.choice((0, 0, 0, -1, 1))
    return max(clusters, 2 if cluster == 1 else 1) * cluster


def _short(rng: random.Random, spec: DeviceSpec, gpu: int, stream: int) -> Row:
    shape = _shape(rng, spec)
    return [
        gpu, stream, _blocks(rng, spec, shape, rng.uniform(0.02, 1.3)), *shape, -1, _ns(rng, 5, 250)
    ]  # fmt: skip


def _ns(rng: random.Random, least: int, most: int) -> int:
    """A random time between two numbers of microseconds."""
    return rng.randint(least, most) * 1000
