"""Latent states in which runs certainly began: no other state explains the run."""

from __future__ import annotations

import numpy as np

from tbsched.calibration.asking import whole_gpu
from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import Finding, KnownValues
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import matching_state
from tbsched.traces.trace import Trace

_SEQUENCES = 96


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Determines the latent state from small sequences of clusters and single blocks, whose order
    shows it. Returns findings."""
    device = draft(known)
    if len(device.initial_states()) == 1:
        known.notes["states"] = set(device.initial_states())
        return []
    sizes = [size for size in known.notes["clusters"] if size <= lab.sms][:3]
    launches = [small(blocks=n, cluster=n) for n in sizes] + [small()]
    rng = np.random.default_rng(7)
    sequences = [whole_gpu.draw(rng, launches, lab.sms, 5) for _ in range(_SEQUENCES)]
    traces = [trace for runs in lab.runs(sequences) for trace in runs]
    known.notes["states"] = {
        state for trace in traces if (state := only(trace, device)) is not None
    }
    return []


def only(trace: Trace, device: DeviceSpec) -> InitialState | None:
    """Returns the only latent state that explains a run; None if there are several, or none."""
    states = list(device.initial_states())
    state = matching_state(trace, device, None, states)
    if state is None:
        return None
    other_states = [other for other in states if other != state]
    return state if matching_state(trace, device, None, other_states) is None else None
