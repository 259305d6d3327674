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
from tbsched.prediction.neighbours.profiles import KernelProfile, Row, profile_for
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
        launches: they come to an idle GPU in this order. Their streams do not matter.
        device: a name (:func:`tbsched.devices`), the path of a ``.toml`` file, or a spec.
        profiles: a profile for the ``name`` of each launch.

    Returns:
        A factor for each launch; 1 is as fast as alone. Blocks that find no room beside the others
        do not count.

    Raises:
        TypeError, ValueError: a launch that cannot run on the device, finds no room at all or has
            no profile.

    Example:
        >>> add = tb.sm.KernelProfile("add", {"dram": 0.4}, depth=8.0)
        >>> launch = tb.Launch(264, 256, 32, name="add")
        >>> [round(factor, 1) for factor in tb.sm.slowdowns([launch, launch], "h200", {"add": add})]
        [1.6, 1.6]
    """
    spec = find_device(device)
    known = list(items("slowdowns", "launches", launches))
    for each in known:
        instance("slowdowns", "launches", each, Launch)
    rows = [profile_for(launch, number, profiles).row() for number, launch in enumerate(known)]
    together = times(rows, spec.sms, mixture(known, spec))
    found = []
    for number, launch in enumerate(known):
        if not together[number]:
            raise ValueError(f"launches: no block of launch {number} finds room beside the others")
        (alone,) = times(rows[number : number + 1], spec.sms, mixture([launch], spec))
        found.append(together[number] / alone)
    return tuple(found)


def mixture(launches: Iterable[Launch], spec: DeviceSpec) -> Mixture:
    """What SMs hold when launches have come to an idle GPU and nothing has left."""
    held = [replace(each, stream=None, duration=None, cooperative=False) for each in launches]
    counts = [
        np.bincount(placement.smid[placement.smid >= 0], minlength=spec.sms).tolist()
        for placement in predict(Sequence(held), spec)
    ]
    alike = Counter(zip(*counts, strict=True))
    return [(list(blocks), sms) for blocks, sms in sorted(alike.items())]


def times(rows: list[Row], sms: int, mixture: Mixture) -> list[float]:
    """Of each kernel's blocks, in the mean over them; 0 where there are none."""
    (found,) = _core.contention_times(rows, sms, [mixture])
    table = np.reshape(found, (len(mixture), len(rows)))
    blocks = np.array([[count * of for count in each] for each, of in mixture])
    return [
        float(np.average(table[:, k], weights=blocks[:, k])) if blocks[:, k].any() else 0.0
        for k in range(len(rows))
    ]
