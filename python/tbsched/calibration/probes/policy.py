"""The policy, by elimination among the rows of the table."""

from __future__ import annotations

import numpy as np

from tbsched.calibration.asking import whole_gpu
from tbsched.calibration.asking.choices import Choices, read, with_bases
from tbsched.calibration.asking.elimination import Left, by_every_block, eliminate
from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import Finding, Found, assumed
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import policies
from tbsched.program.sequence import Launch, Sequence

_PATH = "scheduler.policy"
_SAME = {"algorithm1": "ampere"}  # its slow reference, with the same answers


def ask(lab: Lab, found: Found) -> list[Finding]:
    """First how many blocks each SM gets, then which ones."""
    spec = draft(found)
    launches = launches_of(spec)
    rows = [row.name for row in policies() if row.name not in _SAME]
    choices: Choices = {"policy": tuple(reversed(rows))}  # the strongest first
    devices = with_bases(found, spec, choices)

    def drawn(rng: np.random.Generator) -> Sequence:
        return whole_gpu.draw(rng, launches, lab.sms)

    left = eliminate(lab, devices, drawn, whole_gpu.VIEW, seed=1, patience=2)
    exact = by_every_block(lab, left, drawn, seed=2)
    return read_exact(found, left, exact, choices)


def launches_of(spec: DeviceSpec) -> list[Launch]:
    """Of several sizes, without shared memory: whether its gaps are understood does not matter."""
    warps = [w for w in (1, 2, 3, 4, 6, 8, 11, 16, 32) if 32 * w <= spec.threads_per_block]
    return [small(w) for w in warps] + [small(w, 64) for w in warps[:6]]


def read_exact(found: Found, left: Left, exact: Left, choices: Choices) -> list[Finding]:
    """From the rows that have the right number of blocks on each SM, and from those of them that
    have the right ones."""
    if left.devices and not exact.devices:
        names = list(dict.fromkeys(device.policy for device in left.devices))
        because = (
            "the numbers of blocks on each SM fit; which blocks they are fits no row: "
            f"no rule fits; the smallest disagreement: {exact.misfit!r}"
        )
        return [assumed(_PATH, names[0], because, tuple(names[1:]))]
    return read(found, exact, choices)
