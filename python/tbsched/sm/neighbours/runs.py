"""Runs of a kernel alone and beside rulers, and the profile that they tell."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.neighbours.factors import Mixture, mixture
from tbsched.prediction.neighbours.profiles import KernelProfile
from tbsched.program.sequence import Launch
from tbsched.sm.neighbours.fitting import Slowdown, fit
from tbsched.sm.neighbours.rulers import Ruler, launch_of


@dataclass(frozen=True, slots=True)
class RulerRun:
    """A run of a kernel, of a ruler, or of both.

    Attributes:
        ruler: its name; None: the kernel was alone.
        blocks: of the ruler on each SM.
        seconds: that the kernel took; None: the ruler was alone.
        rate: of the ruler, on the SMs where the kernel was; None: the kernel was alone.
    """

    ruler: str | None
    blocks: int
    seconds: float | None
    rate: float | None


def profile_of(
    name: str,
    runs: Iterable[tuple[Launch, Iterable[RulerRun]]],
    spec: DeviceSpec,
    rulers: Iterable[Ruler],
) -> KernelProfile:
    """The profile that runs tell.

    Args:
        name: of the kernel.
        runs: of one launch of it or of several, each with the kernel alone, rulers alone, and both.
        spec: the GPU.
        rulers: those of the runs; runs of others do not count.
    """
    known = {ruler.name: ruler for ruler in rulers}
    slowdowns: list[Slowdown] = []
    warps = 1
    for launch, own in runs:
        warps = -(-launch.threads // 32)
        slowdowns += slowdowns_of(launch, own, spec, known)
    return fit(name, warps, spec.sms, slowdowns)


def slowdowns_of(
    launch: Launch, runs: Iterable[RulerRun], spec: DeviceSpec, rulers: dict[str, Ruler]
) -> list[Slowdown]:
    """What the runs of a launch say: medians, as factors."""
    seconds: dict[tuple[str | None, int], list[float]] = {}
    rates: dict[tuple[str | None, int, bool], list[float]] = {}
    for run in runs:
        if run.seconds is not None:
            seconds.setdefault((run.ruler, run.blocks), []).append(run.seconds)
        if run.rate is not None:
            alone = run.seconds is None
            rates.setdefault((run.ruler, run.blocks, alone), []).append(run.rate)
    own = statistics.median(seconds[None, 0])
    lone = [([count, 0], sms) for (count,), sms in mixture([launch], spec)]
    found = []
    for (name, blocks), times in seconds.items():
        if name is None or name not in rulers:
            continue
        row = rulers[name].profile.row()
        ruler = launch_of(spec.sms, blocks, launch.carveout)
        both = [([count, other], sms) for (other, count), sms in mixture([ruler, launch], spec)]
        found.append(Slowdown(lone, both, row, True, statistics.median(times) / own))
        rate = statistics.median(rates[name, blocks, False])
        if rate > 0:
            factor = statistics.median(rates[name, blocks, True]) / rate
            ruler_alone: Mixture = [([0, blocks], spec.sms)]
            found.append(Slowdown(ruler_alone, both, row, False, factor))
    return found
