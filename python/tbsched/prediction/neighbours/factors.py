"""Slowdown of kernels that run together, compared with alone, without a timeline."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from tbsched import _core
from tbsched.errors import shown
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.neighbours.profiles import KernelProfile
from tbsched.prediction.neighbours.slowing import MEASURED, neighbours_of
from tbsched.prediction.predict import predict
from tbsched.prediction.recorded import held
from tbsched.program.checks import instances
from tbsched.program.sequence import Launch, Sequence

# Kinds of SMs: their launches with numbers of blocks, and how many SMs are of the kind.
Mixture = list[tuple[list[tuple[int, int]], int]]


def slowdowns(
    launches: Iterable[Launch],
    device: str | os.PathLike[str] | DeviceSpec,
    profiles: Mapping[str, KernelProfile],
) -> tuple[float, ...]:
    """Returns a factor for each launch: how many times as long its blocks take, while all launches
    are resident, as they take alone.

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
        [1.7, 1.7]
    """
    spec = find_device(device)
    known = instances("slowdowns", "launches", launches, Launch)
    for launch_ in known:
        if launch_.duration is None:
            raise ValueError(
                f"slowdowns.launches: {shown(launch_)} has no duration, which is needed"
            )
    if not known:
        return ()
    seq = Sequence([replace(launch_, stream=number) for number, launch_ in enumerate(known)])
    rows = neighbours_of(seq, spec, MEASURED, profiles)
    assert rows is not None
    alone = [mixture({number: launch}, spec) for number, launch in enumerate(known)]
    mixtures = [*alone, mixture(dict(enumerate(known)), spec)]
    times = _core.contention_times(rows, spec.sms, alone, mixtures)
    factors = []
    for number in range(len(known)):
        before = _mean_time(alone[number], times[number], number)
        together = _mean_time(mixtures[-1], times[-1], number)
        if before is None or together is None:
            raise ValueError(f"launches: no block of launch {number} finds room beside the others")
        factors.append(together / before)
    return tuple(factors)


def mixture(launches: Mapping[int, Launch], spec: DeviceSpec) -> Mixture:
    """Returns what SMs hold after the launches came to an idle GPU: for each different content how
    many blocks of each launch, and how many SMs have it."""
    staying = [replace(held(launch), cooperative=False) for launch in launches.values()]
    counts = [
        np.bincount(placement.smid[placement.smid >= 0], minlength=spec.sms).tolist()
        for placement in predict(Sequence(staying), spec)
    ]
    sms_by_counts = Counter(zip(*counts, strict=True))
    return [
        ([pair for pair in zip(launches, blocks, strict=True) if pair[1]], sms)
        for blocks, sms in sorted(sms_by_counts.items())
        if any(blocks)
    ]


def _mean_time(mixture: Mixture, times: list[float], launch: int) -> float | None:
    """Returns how many times as long as alone the blocks of a launch take, on average over a
    mixture; None: it has no blocks there."""
    unread = iter(times)  # one per launch and kind of SM
    rows = [(sms * count, next(unread), index) for on_sm, sms in mixture for index, count in on_sm]
    launch_rows = [(blocks, time) for blocks, time, index in rows if index == launch]
    if not launch_rows:
        return None
    all_blocks = sum(blocks for blocks, _ in launch_rows)
    return sum(blocks * time for blocks, time in launch_rows) / all_blocks
