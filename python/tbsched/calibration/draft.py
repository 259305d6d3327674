"""A device of what has been found so far; what has not been asked yet is a guess."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from tbsched.calibration.finding import Found
from tbsched.hardware.device_fields import FIELDS, Mechanisms
from tbsched.hardware.spec import DeviceSpec

# Of fields without a default. A finding takes the place of each.
_GUESSES: dict[str, Any] = {
    "sms_per_tpc": 2,
    "policy": "ampere",
    "strict_round_robin": True,
    "warp_skip": True,
    "registers": "pooled",
    "shared_memory": "contiguous",
    "shared_memory_configuration": True,
    "configuration_per_tpc": True,
    "local_memory_configuration": True,
}
GUESSED = frozenset(_GUESSES)


def draft(found: Found, name: str = "calibrated") -> DeviceSpec:
    """The device; with the compute capability that the driver names."""
    values = {**_GUESSES, **{field: found[field] for field in found}}
    values.setdefault("sm_preference", tuple(range(found["sms"])))
    values.setdefault("title", str(found.notes.get("title", name)))
    details = found.notes.get("details", {})
    values.setdefault("compute_capability", str(details.get("compute_capability", "unknown")))
    switches = {item.name for item in fields(Mechanisms)}
    known = {field.name for field in FIELDS if field.section and not field.is_mechanism}
    return DeviceSpec(
        name=name,
        mechanisms=Mechanisms(**{key: v for key, v in values.items() if key in switches}),
        **{key: value for key, value in values.items() if key in known and key not in switches},
    )


def with_values(spec: DeviceSpec, **values: Any) -> DeviceSpec:
    """The device with other values, of mechanisms too."""
    switches = {item.name for item in fields(Mechanisms)}
    own = {key: value for key, value in values.items() if key not in switches}
    mechanisms = {key: value for key, value in values.items() if key in switches}
    return replace(spec, mechanisms=replace(spec.mechanisms, **mechanisms), **own)
