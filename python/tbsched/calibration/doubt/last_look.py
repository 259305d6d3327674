"""Elimination, with sequences of a campaign, among all values that other probes left open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tbsched.calibration.asking.choices import read, with_bases
from tbsched.calibration.asking.elimination import Draw, Remaining, by_every_block
from tbsched.calibration.asking.lab import LEAST_REGISTERS, Lab
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import Finding, KnownValues
from tbsched.campaigns.space.draws import Draws
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch, Sequence

# Mechanisms that no probe measures yet.
LEFT_OUT = ("partitions", "cooperative", "priorities")
_MAX_AT_ONCE = 128  # candidate devices, each of which predicts every draw


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Eliminates devices that remain by sequences of a campaign on which they differ, and returns
    findings."""
    known.most_at_once = _MAX_AT_ONCE
    names = known.undetermined()
    if not names:
        return []
    known.premises = names
    spec = draft(known)
    remaining = Remaining(with_bases(known, spec, {}))
    return read(known, by_every_block(lab, remaining, campaign_draws(spec), seed=9), {})


def campaign_draws(spec: DeviceSpec) -> Draw:
    """Returns a function that draws a campaign's sequences within the limits of a device."""
    options = SequenceOptions.everything(spec).without(LEFT_OUT)
    largest = max((size for size in options.clusters if size <= spec.max_cluster), default=1)
    limited = replace(spec, max_cluster=largest)
    endless = iter(Draws(limited, replace(options, clusters=options.clusters), seed=9))

    def drawn(_: np.random.Generator) -> Sequence:
        return next(
            draw.sequence for draw in endless if all(map(_can_be_launched, draw.sequence.launches))
        )

    return drawn


def _can_be_launched(launch: Launch) -> bool:
    return launch.registers >= LEAST_REGISTERS
