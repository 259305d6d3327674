"""How much slower kernels are together than alone, without a timeline."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from tbsched import _core
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.neighbours.profiles import KernelProfile
from tbsched.prediction.neighbours.slowing import MEASURED, Row, neighbours_of
from tbsched.prediction.predict import predict
from tbsched.program.checks import instance, items
from tbsched.program.sequence import Launch, Sequence

# Blocks of each kernel on an SM, and how many such SMs there are.
Mixture = list[tuple[list[int], int]]


def slowdowns(
    launches: Iterable[Launch],
    device: str | os.PathLike[str] | DeviceSpec,
    profiles: Mapping[str, KernelProfile],
) -> tuple[float, ...]:
    """How many times as long the blocks of each launch take while all are resident as alone.

    Args:
        launches: with durations, which are those of a launch alone. They come to an idle GPU in
            this order. Their streams do not matter.
        device: a name (:func:`tbsched.devices`), the path of a ``.toml`` file, or a spec.
        profiles: a profile for the ``name`` of each launch.

    Returns:
        A factor for each launch; 1 is as fast as alone. Blocks that find no room beside the others
        do not count.

    Raises:
        TypeError, ValueError: a launch that cannot run on the device, finds no room at all or has
            no profile.

    Example:
        >>> add = tb.sm.KernelProfile("add", {"dram": 8e-5}, memory_wait=8e-5, far=1.0)
        >>> launch = tb.Launch(132, 256, 32, name="add", duration=1e-4)
        >>> [round(factor, 1) for factor in tb.sm.slowdowns([launch, launch], "h200", {"add": add})]
        [1.6, 1.6]
    """
    spec = find_device(device)
    known = list(items("slowdowns", "launches", launches))
    for each in known:
        instance("slowdowns", "launches", each, Launch)
    seq = Sequence([replace(each, stream=number) for number, each in enumerate(known)])
    neighbours = neighbours_of(seq, spec, MEASURED, profiles)
    assert neighbours is not None
    rows, kernels = neighbours
    alone = [mixture([launch], spec) for launch in known]
    own = [_of(rows, [kernel], held) for kernel, held in zip(kernels, alone, strict=True)]
    measured = [own[kernels.index(kernel)] for kernel in range(len(rows))]
    mixtures = [*own, _of(rows, kernels, mixture(known, spec))]
    times = _core.contention_times(rows, spec.sms, measured, mixtures)
    found = []
    for number, kernel in enumerate(kernels):
        before = _mean(own[number], times[number], kernel, len(rows))
        together = _mean(mixtures[-1], times[-1], kernel, len(rows))
        if not together:
            raise ValueError(f"launches: no block of launch {number} finds room beside the others")
        found.append(together / before)
    return tuple(found)


def mixture(launches: Iterable[Launch], spec: DeviceSpec) -> Mixture:
    """What SMs hold when launches have come to an idle GPU and nothing has left."""
    held = [replace(each, stream=None, duration=None, cooperative=False) for each in launches]
    counts = [
        np.bincount(placement.smid[placement.smid >= 0], minlength=spec.sms).tolist()
        for placement in predict(Sequence(held), spec)
    ]
    alike = Counter(zip(*counts, strict=True))
    return [(list(blocks), sms) for blocks, sms in sorted(alike.items()) if any(blocks)]


def _of(rows: list[Row], kernels: list[int], held: Mixture) -> Mixture:
    """The same by kernel: launches may be of one kernel."""
    found = []
    for blocks, sms in held:
        by_kernel = [0] * len(rows)
        for kernel, count in zip(kernels, blocks, strict=True):
            by_kernel[kernel] += count
        found.append((by_kernel, sms))
    return found


def _mean(held: Mixture, times: list[float], kernel: int, kernels: int) -> float:
    """Of a kernel's blocks; 0 where there are none."""
    weights = [sms * blocks[kernel] for blocks, sms in held]
    if not any(weights):
        return 0.0
    return float(np.average(np.reshape(times, (-1, kernels))[:, kernel], weights=weights))
