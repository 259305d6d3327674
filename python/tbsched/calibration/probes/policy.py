"""The policy, by elimination among the rows of the table."""

from __future__ import annotations

from collections.abc import Sequence as ListOf

import numpy as np

from tbsched.calibration.asking import whole_gpu
from tbsched.calibration.asking.choices import Choices, read, with_bases
from tbsched.calibration.asking.elimination import Remaining, by_every_block, eliminate
from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.draft import draft, with_values
from tbsched.calibration.finding import NO_RULE, Finding, Found, Values, assumed
from tbsched.calibration.probes.topology import maps_in_turns
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import policies
from tbsched.program.sequence import Launch, Sequence

_PATH = "scheduler.policy"
_IN_TURNS = "hopper"  # hands single blocks to GPCs in turns, also to those of one SM
_MAP = ("sms_per_tpc", "gpcs")
# A slow reference with the same answers, and a text that the paper's own cases contradict.
_LEFT_OUT = ("algorithm1", "algorithm1_printed")


def ask(lab: Lab, found: Found) -> list[Finding]:
    """Eliminates policies by the blocks per SM, then by the SM of every single block."""
    spec = draft(found)
    launches = launches_of(spec)
    rows = [row.name for row in policies() if row.name not in _LEFT_OUT]
    choices: Choices = {"policy": tuple(reversed(rows))}  # the strongest first
    devices = with_bases(found, spec, choices)

    def drawn(rng: np.random.Generator) -> Sequence:
        return whole_gpu.draw(rng, launches, lab.sms)

    left = eliminate(lab, devices, drawn, whole_gpu.VIEW, seed=1, patience=2)
    exact = by_every_block(lab, left, drawn, seed=2)
    names = {device.policy for device in exact.devices or left.devices}
    if found["max_cluster"] < 2 and _IN_TURNS in names:
        maps = maps_in_turns(lab, found, [])
        bases = with_bases(found, spec, {"policy": (_IN_TURNS,)})
        others = [each for each in exact.devices if each.policy != _IN_TURNS]
        in_turns = by_every_block(lab, Remaining(others + _turned(bases, maps)), drawn, seed=2)
        if in_turns.devices:
            asked = {name: (found[name], *(each[name] for each in maps)) for name in _MAP}
            return read(found, in_turns, {**choices, **asked})
    return read_exact(found, left, exact, choices)


def _turned(bases: ListOf[DeviceSpec], maps: ListOf[Values]) -> list[DeviceSpec]:
    """Returns the devices with each map, for devices without clusters whose GPCs take turns."""
    return [
        with_values(base, **{**values, "name": f"{base.name}-turns-{number}"})
        for base in bases
        for number, values in enumerate(maps)
    ]


def launches_of(spec: DeviceSpec) -> list[Launch]:
    """Returns launches of several sizes without shared memory, whose rules are thus no premise."""
    warps = [w for w in (1, 2, 3, 4, 6, 8, 11, 16, 32) if 32 * w <= spec.threads_per_block]
    return [small(w) for w in warps] + [small(w, 64) for w in warps[:6]]


def read_exact(found: Found, left: Remaining, exact: Remaining, choices: Choices) -> list[Finding]:
    """Returns findings from ``exact``, the policies right about every block, or else from ``left``,
    those right about the number of blocks per SM."""
    if left.devices and not exact.devices:
        names = list(dict.fromkeys(device.policy for device in left.devices))
        because = (
            "the numbers of blocks on each SM fit; which blocks they are fits no row: "
            f"{NO_RULE}; the smallest disagreement: {exact.misfit!r}"
        )
        return [assumed(_PATH, names[0], because, tuple(names[1:]))]
    return read(found, exact, choices)
