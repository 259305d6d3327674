"""The SMs: those that get blocks of a launch that is larger than the GPU."""

from __future__ import annotations

import numpy as np

from tbsched.calibration.asking.lab import MOST_PER_SM, Lab, small
from tbsched.calibration.finding import Finding, KnownValues, assumed, determined
from tbsched.program.sequence import Sequence

_FIRST_GUESS = 256  # doubled until some blocks find no room


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Counts the SMs: launches more and more small blocks until some wait. Returns a finding."""
    blocks = _FIRST_GUESS * MOST_PER_SM
    while True:
        (trace,) = lab.run([Sequence([small(blocks=blocks)])])
        smid = trace[0].smid
        if (smid < 0).any():
            break
        blocks *= 2
    finding = read(np.unique(smid[smid >= 0]), trace.device.sms)
    lab.sms = finding.value
    known.notes["title"] = trace.device.name
    known.notes["details"] = trace.device.details
    return [finding]


def read(sms_seen: np.ndarray, queried: int) -> Finding:
    """Returns the finding from the SMs that had blocks while other blocks waited."""
    path, sms = "topology.sms", len(sms_seen)
    if sms == queried and int(sms_seen[-1]) == sms - 1:
        return determined(
            path, sms, f"a launch larger than the GPU had blocks on each of 0..{sms - 1}"
        )
    return assumed(
        path,
        int(sms_seen[-1]) + 1,
        f"a launch larger than the GPU had blocks on {sms} SMs; the driver says {queried}",
    )
