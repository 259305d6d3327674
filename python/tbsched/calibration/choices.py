"""Fields of which each can have a few values: all combinations, and what is left of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from tbsched.calibration.draft import with_values
from tbsched.calibration.elimination import Left
from tbsched.calibration.finding import Finding, assumed, told
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.spec import DeviceSpec

# By the name of the field; the first one is taken where nothing tells.
Choices = Mapping[str, tuple[Any, ...]]
_BY_NAME = {field.name: field for field in FIELDS}


def combinations(spec: DeviceSpec, choices: Choices) -> list[DeviceSpec]:
    """The device with each combination of values that a device can have."""
    devices = []
    for values in product(*choices.values()):
        try:
            devices.append(with_values(spec, **dict(zip(choices, values, strict=True))))
        except ValueError:
            continue
    return devices


def read(left: Left, choices: Choices) -> list[Finding]:
    """From the devices that no sequence contradicted."""
    # Of those that agree on all sequences the first; its values belong together.
    best = left.devices[0] if left.devices else None
    findings = []
    for name, values in choices.items():
        field = _BY_NAME[name]
        if best is None:
            because = f"no rule fits; the smallest disagreement: {left.misfit!r}"
            findings.append(assumed(field.path, values[0], because))
            continue
        value = field.of(best)
        rivals = tuple(
            {field.of(device): None for device in left.devices if field.of(device) != value}
        )
        if rivals:
            because = f"the others agree with it on all of {left.asked} sequences"
            findings.append(assumed(field.path, value, because, rivals))
        elif len(values) > 1:
            because = f"every other value was wrong about one of {left.asked} sequences"
            findings.append(told(field.path, value, because))
    return findings
