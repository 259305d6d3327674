"""Fields of which each can have a few values: all combinations, and what is left of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from tbsched.calibration.asking.elimination import Draw, Left, View, by_every_block, eliminate
from tbsched.calibration.asking.lab import Lab
from tbsched.calibration.draft import with_values
from tbsched.calibration.finding import NO_RULE, Finding, Found, assumed, told
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.spec import DeviceSpec

# By the name of the field; the first one is taken where nothing tells.
Choices = Mapping[str, tuple[Any, ...]]
_BY_NAME = {field.name: field for field in FIELDS}


def by_elimination(
    lab: Lab,
    found: Found,
    spec: DeviceSpec,
    choices: Choices,
    draw: Draw,
    view: View,
    seed: int,
    *,
    every_block: bool = False,
) -> list[Finding]:
    """Strikes out combinations of values, each with all that is left of what they rest on.

    What is left of all these values is noted.
    """
    left = eliminate(lab, with_bases(found, spec, choices), draw, view, seed=seed)
    if every_block:
        left = by_every_block(lab, left, draw, seed)
    return read(found, left, choices)


def with_bases(found: Found, spec: DeviceSpec, choices: Choices) -> list[DeviceSpec]:
    """The combinations, with each of all that is left of what the probe takes for granted."""
    return [
        device
        for number, base in enumerate(found.bases())
        for device in combinations(
            with_values(spec, **{**base, "name": f"{spec.name}-{number}"}), choices
        )
    ]


def combinations(spec: DeviceSpec, choices: Choices) -> list[DeviceSpec]:
    """The device with each combination of values that a device can have."""
    devices = []
    for number, values in enumerate(product(*choices.values())):
        # Each has a name of its own: what is kept by device is found by it.
        named = {**dict(zip(choices, values, strict=True)), "name": f"{spec.name}-{number}"}
        try:
            devices.append(with_values(spec, **named))
        except ValueError:
            continue
    return devices


def read(found: Found, left: Left, choices: Choices) -> list[Finding]:
    """From the devices that no sequence contradicted; notes what is left.

    What the probe takes for granted may be told, too, if it was not.
    """
    bases = found.bases()
    taken = {name: tuple({base[name]: None for base in bases}) for name in bases[0]}
    asked = {**taken, **choices}
    if not left.devices:
        because = f"{NO_RULE}; the smallest disagreement: {left.misfit!r}"
        return [
            assumed(_BY_NAME[name].path, values[0], because) for name, values in choices.items()
        ]
    # Of those that agree on all sequences the first; its values belong together.
    best = left.devices[0]
    found.leave({name: _BY_NAME[name].of(device) for name in asked} for device in left.devices)
    findings = []
    for name, values in asked.items():
        field = _BY_NAME[name]
        value = field.of(best)
        rivals = tuple(
            {field.of(device): None for device in left.devices if field.of(device) != value}
        )
        if rivals:
            because = f"the others agree with it on all of {left.asked} sequences"
            findings.append(assumed(field.path, value, because, rivals))
        elif name in found.partial:
            findings.append(assumed(field.path, value, "others have not been asked for"))
        elif len(values) > 1:
            because = f"every other value was wrong about at least one of {left.asked} sequences"
            findings.append(told(field.path, value, because))
            found.eliminated.add(name)
    return findings
