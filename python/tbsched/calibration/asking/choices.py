"""Elimination among all combinations of values of a few fields."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from tbsched.calibration.asking.elimination import Draw, Remaining, View, by_every_block, eliminate
from tbsched.calibration.asking.lab import Lab
from tbsched.calibration.draft import with_values
from tbsched.calibration.finding import NO_RULE, Finding, KnownValues, assumed, determined
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.spec import DeviceSpec

# Possible values by field name; the first one is assumed where no observation decides.
Choices = Mapping[str, tuple[Any, ...]]
_BY_NAME = {field.name: field for field in FIELDS}


def by_elimination(
    lab: Lab,
    known: KnownValues,
    spec: DeviceSpec,
    choices: Choices,
    draw: Draw,
    view: View,
    seed: int,
    *,
    every_block: bool = False,
) -> list[Finding]:
    """Eliminates combinations of values that contradict what is observed, and returns findings from
    those that remain.

    Each combination is tried with every possible value of its premises. The remaining ones are
    recorded in ``known``.
    """
    remaining = eliminate(lab, with_bases(known, spec, choices), draw, view, seed=seed)
    if every_block:
        remaining = by_every_block(lab, remaining, draw, seed)
    return read(known, remaining, choices)


def with_bases(known: KnownValues, spec: DeviceSpec, choices: Choices) -> list[DeviceSpec]:
    """Returns a device for each combination of the values of choices with possible values of their
    premises."""
    return [
        device
        for index, base in enumerate(known.bases())
        for device in combinations(
            with_values(spec, **{**base, "name": f"{spec.name}-{index}"}), choices
        )
    ]


def combinations(spec: DeviceSpec, choices: Choices) -> list[DeviceSpec]:
    """Returns the device with each combination of values that makes a valid device."""
    devices = []
    for index, values in enumerate(product(*choices.values())):
        # Names are unique, as caches are keyed by device.
        with_name = {**dict(zip(choices, values, strict=True)), "name": f"{spec.name}-{index}"}
        try:
            devices.append(with_values(spec, **with_name))
        except ValueError:
            continue
    return devices


def read(known: KnownValues, remaining: Remaining, choices: Choices) -> list[Finding]:
    """Returns findings from the devices that no sequence contradicted, and records what remains.

    Premises of the probe may be determined, too, if they were not before.
    """
    bases = known.bases()
    premise_values = {name: tuple({base[name]: None for base in bases}) for name in bases[0]}
    all_choices = {**premise_values, **choices}
    if not remaining.devices:
        because = f"{NO_RULE}; the smallest disagreement: {remaining.misfit!r}"
        return [
            assumed(_BY_NAME[name].path, values[0], because) for name, values in choices.items()
        ]
    # The first of the devices that agree on all sequences, so that its values fit each other.
    best = remaining.devices[0]
    known.set_remaining(
        {name: _BY_NAME[name].of(device) for name in all_choices} for device in remaining.devices
    )
    findings = []
    for name, values in all_choices.items():
        field = _BY_NAME[name]
        value = field.of(best)
        rivals = tuple(
            {field.of(device): None for device in remaining.devices if field.of(device) != value}
        )
        if rivals:
            because = f"the others agree with it on all of {remaining.asked} sequences"
            findings.append(assumed(field.path, value, because, rivals))
        elif name in known.partial:
            findings.append(assumed(field.path, value, "others have not been asked for"))
        elif len(values) > 1:
            because = (
                f"every other value was wrong about at least one of {remaining.asked} sequences"
            )
            findings.append(determined(field.path, value, because))
            known.by_elimination.add(name)
    return findings
