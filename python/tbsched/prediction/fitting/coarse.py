"""Launches of very many blocks, as fewer and longer ones."""

from __future__ import annotations

import functools
from dataclasses import replace

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.events.launch import Launch
from tbsched.program.partition import Partition
from tbsched.program.sequence import Sequence, with_launches

# Full waves that a launch keeps. Of n of them, what the last wave leaves idle is 1/n at most.
_WAVES = (32, 16, 8, 4)


def blocks_at_once(spec: DeviceSpec, launch: Launch) -> int:
    """Returns how many blocks of a launch an idle GPU holds, at least one cluster."""
    return _cached_blocks_at_once(
        spec, launch.threads, launch.registers, launch.shared_memory, launch.local_memory,
        launch.carveout, launch.cluster, launch.partition,
    )  # fmt: skip


@functools.lru_cache(maxsize=4096)
def _cached_blocks_at_once(
    spec: DeviceSpec, threads: int, registers: int, shared_memory: int, local_memory: int,
    carveout: int | None, cluster: int, partition: Partition | None,
) -> int:  # fmt: skip
    """Returns :func:`blocks_at_once` of launches with these demands, from a cache."""
    launch = Launch(
        cluster, threads, registers, shared_memory, local_memory, carveout, cluster,
        partition=partition,
    )  # fmt: skip
    trace = predict(Sequence([launch]), spec)
    assert trace.capacities is not None  # a prediction has them
    (capacity,) = trace.capacities()
    return max(int(capacity.blocks.sum()), launch.cluster)


def coarser(sequence: Sequence, spec: DeviceSpec, max_blocks: int) -> tuple[Sequence, int]:
    """Returns a sequence with at most about ``max_blocks`` blocks, and how many launches changed. A
    launch of many waves keeps some full ones and its own last one."""
    launches = sequence.launches
    for waves in _WAVES:
        if sum(launch.blocks for launch in launches) <= max_blocks:
            break
        launches = tuple(_with_fewer_waves(launch, spec, waves) for launch in launches)
    changed = sum(
        one.blocks != other.blocks for one, other in zip(launches, sequence.launches, strict=True)
    )
    return (with_launches(sequence, launches), changed) if changed else (sequence, 0)


def _with_fewer_waves(launch: Launch, spec: DeviceSpec, max_waves: int) -> Launch:
    """Returns the launch with at most ``max_waves`` full waves, and its own last one."""
    wave = blocks_at_once(spec, launch)
    waves, rest = divmod(launch.blocks, wave)
    if waves <= max_waves or isinstance(launch.duration, tuple):
        return launch
    blocks = max_waves * wave + rest
    return replace(launch, blocks=blocks - blocks % launch.cluster)
