"""The policy, by elimination among the rows of the table."""

from __future__ import annotations

from collections.abc import Sequence as ListOf

import numpy as np

from tbsched.calibration.asking import whole_gpu
from tbsched.calibration.asking.choices import Choices, read, with_bases
from tbsched.calibration.asking.elimination import Remaining, by_every_block, eliminate
from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.draft import draft, with_values
from tbsched.calibration.finding import NO_RULE, Finding, KnownValues, Values, assumed
from tbsched.calibration.probes.topology import maps_in_turns
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import policies
from tbsched.program.sequence import Launch, Sequence

_PATH = "scheduler.policy"
_IN_TURNS = "hopper"  # hands single blocks to GPCs in turns, also to those of one SM
_MAP = ("sms_per_tpc", "gpcs")
# A slow reference with the same answers, and a text that the paper's own cases contradict.
_LEFT_OUT = ("algorithm1", "algorithm1_printed")


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Eliminates policies that contradict the blocks per SM, then those that contradict the SM of
    each block, and returns findings."""
    spec = draft(known)
    launches = launches_of(spec)
    rows = [row.name for row in policies() if row.name not in _LEFT_OUT]
    choices: Choices = {"policy": tuple(reversed(rows))}  # the strongest first
    devices = with_bases(known, spec, choices)

    def drawn(rng: np.random.Generator) -> Sequence:
        return whole_gpu.draw(rng, launches, lab.sms)

    remaining = eliminate(lab, devices, drawn, whole_gpu.VIEW, seed=1, patience=2)
    exact = by_every_block(lab, remaining, drawn, seed=2)
    names = {device.policy for device in exact.devices or remaining.devices}
    if known["max_cluster"] < 2 and _IN_TURNS in names:
        maps = maps_in_turns(lab, known, [])
        bases = with_bases(known, spec, {"policy": (_IN_TURNS,)})
        other_policies = [device for device in exact.devices if device.policy != _IN_TURNS]
        in_turns = by_every_block(
            lab, Remaining(other_policies + _turned(bases, maps)), drawn, seed=2
        )
        if in_turns.devices:
            map_choices = {name: (known[name], *(values[name] for values in maps)) for name in _MAP}
            return read(known, in_turns, {**choices, **map_choices})
    return read_exact(known, remaining, exact, choices)


def _turned(bases: ListOf[DeviceSpec], maps: ListOf[Values]) -> list[DeviceSpec]:
    """Returns the devices with each map, for devices without clusters whose GPCs take turns."""
    return [
        with_values(base, **{**values, "name": f"{base.name}-turns-{index}"})
        for base in bases
        for index, values in enumerate(maps)
    ]


def launches_of(spec: DeviceSpec) -> list[Launch]:
    """Returns launches of several sizes without shared memory, whose rules are thus no premise."""
    warps = [w for w in (1, 2, 3, 4, 6, 8, 11, 16, 32) if 32 * w <= spec.threads_per_block]
    return [small(w) for w in warps] + [small(w, 64) for w in warps[:6]]


def read_exact(
    known: KnownValues, remaining: Remaining, exact: Remaining, choices: Choices
) -> list[Finding]:
    """Returns findings from ``exact``, the policies right about every block; or from ``remaining``,
    those right about the number of blocks per SM."""
    if remaining.devices and not exact.devices:
        names = list(dict.fromkeys(device.policy for device in remaining.devices))
        because = (
            "the numbers of blocks on each SM fit; which blocks they are fits no row: "
            f"{NO_RULE}; the smallest disagreement: {exact.misfit!r}"
        )
        return [assumed(_PATH, names[0], because, tuple(names[1:]))]
    return read(known, exact, choices)
