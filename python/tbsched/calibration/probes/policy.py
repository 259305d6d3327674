"""The policy, by elimination among the rows of the table, and the latent states that occur."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as ListOf

import numpy as np

from tbsched.calibration.asking import whole_gpu
from tbsched.calibration.asking.choices import Choices, read, with_bases
from tbsched.calibration.asking.elimination import Left, by_every_block, eliminate
from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import Finding, Found, assumed
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import matching_state, policies
from tbsched.program.sequence import Launch, Release, Sequence

_PATH = "scheduler.policy"
_SAME = {"algorithm1": "ampere"}  # its slow reference, with the same answers
_STATES = 24  # sequences


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
    findings = read_exact(found, left, exact, choices)
    found.notes["states"] = _states(lab, exact.devices[:1], drawn)
    return findings


def _states(
    lab: Lab, devices: ListOf[DeviceSpec], draw: Callable[[np.random.Generator], Sequence]
) -> set[InitialState]:
    """The latent states that some sequences began in."""
    rng = np.random.default_rng(7)
    found = set()
    for device in devices:
        traces = lab.run([_fitting(draw(rng), device) for _ in range(_STATES)])
        states = list(device.initial_states())
        found |= {matching_state(trace, device, None, states) for trace in traces}
    return {state for state in found if state is not None}


def launches_of(spec: DeviceSpec) -> list[Launch]:
    """Of several sizes, without shared memory: whether its gaps are understood does not matter."""
    warps = [w for w in (1, 2, 3, 4, 6, 8, 11, 16, 32) if 32 * w <= spec.threads_per_block]
    return [small(w) for w in warps] + [small(w, 64) for w in warps[:6]]


def _fitting(sequence: Sequence, device: DeviceSpec) -> Sequence:
    """The sequence up to the first launch that waits on the device."""
    ((shown,),) = whole_gpu.VIEW.predict([device], [sequence], 0)
    seen = 0
    for position, event in enumerate(sequence.events):
        seen += not isinstance(event, Release)
        if seen == len(shown):
            return sequence[: position + 1]
    return sequence


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
