"""Draft of a device: what was found so far, and guesses for all other fields."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from tbsched.calibration.finding import ASSUMED, DOCUMENTED, TOLD, Finding, KnownValues, assumed
from tbsched.hardware.device_fields import FIELDS, Mechanisms
from tbsched.hardware.documented import documented as documented_for
from tbsched.hardware.spec import DeviceSpec, Provenance

# Values of fields without a default, until a finding replaces them.
_GUESSES: dict[str, Any] = {
    "sms_per_tpc": 2,
    "processing_blocks": 4,
    "blocks_per_sm": 16,
    "warps_per_sm": 32,
    "registers_per_sm": 65536,
    "threads_per_block": 1024,
    "registers_per_thread": 255,
    "register_unit": 256,
    "shared_memory_unit": 128,
    "shared_memory_reserve": 1024,
    "shared_memory_per_block": 49152,
    "shared_memory_configurations": (65536,),
    "strict_round_robin": True,
    "warp_skip": True,
    "registers": "pooled",
    "shared_memory": "contiguous",
    "shared_memory_configuration": True,
    "configuration_per_tpc": True,
    "local_memory_configuration": True,
    "policy": "ampere",
}
PROVENANCES = {TOLD: "measured", DOCUMENTED: "vendor", ASSUMED: "assumed"}
_BY_NAME = {field.name: field for field in FIELDS}


def guesses(known: KnownValues) -> list[Finding]:
    """Returns assumptions for the required fields of a device file that no probe has found."""
    because = "not measured"
    return [
        assumed(_BY_NAME[name].path, value, because)
        for name, value in _guessed(known).items()
        if name not in known
    ]


def _guessed(known: KnownValues) -> dict[str, Any]:
    """Returns a value for each field without a default; together they make a valid device."""
    values = {**_GUESSES, "sm_preference": tuple(range(known["sms"])), **known}
    shared_memory_per_sm = values["shared_memory_per_block"] + values["shared_memory_reserve"]
    if "shared_memory_configurations" not in known:
        values["shared_memory_configurations"] = (max(shared_memory_per_sm, 65536),)
    return {name: values[name] for name in (*_GUESSES, "sm_preference")}


def documented(known: KnownValues) -> list[Finding]:
    """Returns values that NVIDIA documents, for the fields that are not determined."""
    capability = str(known.notes.get("details", {}).get("compute_capability", ""))
    documentation = documented_for(capability)
    because = f"NVIDIA documents it for compute capability {capability}; it was not told"
    return [
        Finding(_BY_NAME[name].path, value, DOCUMENTED, because)
        for name, value in ({} if documentation is None else documentation.limits).items()
        if not known.is_determined(name)
    ]


def draft(known: KnownValues, name: str = "calibrated") -> DeviceSpec:
    """Returns the device, with the compute capability that the driver names."""
    values = {**_guessed(known), **known}
    values.setdefault("title", str(known.notes.get("title", name)))
    details = known.notes.get("details", {})
    values.setdefault("compute_capability", str(details.get("compute_capability", "unknown")))
    switches = {item.name for item in fields(Mechanisms)}
    return DeviceSpec(
        name=name,
        mechanisms=Mechanisms(**{key: v for key, v in values.items() if key in switches}),
        provenance={
            "device.title": Provenance("measured", "the oracle says so"),
            "device.compute_capability": Provenance("measured", "the oracle says so"),
            **{
                finding.path: Provenance(PROVENANCES[finding.kind], source(finding))
                for finding in known.findings
            },
        },
        **{key: value for key, value in values.items() if key not in switches},
    )


def source(finding: Finding) -> str:
    """Returns the source of a value, as a device file names it."""
    probe_words = f"calibration, {finding.probe}: " if finding.probe else "calibration: "
    rivals_words = ", ".join(map(str, finding.rivals))
    return f"{probe_words}{finding.because}" + (
        f"; not told apart from {rivals_words}" if rivals_words else ""
    )


def with_values(spec: DeviceSpec, **values: Any) -> DeviceSpec:
    """Returns the device with other values, also of mechanisms."""
    switches = {item.name for item in fields(Mechanisms)}
    own_fields = {key: value for key, value in values.items() if key not in switches}
    mechanisms = {key: value for key, value in values.items() if key in switches}
    return replace(spec, mechanisms=replace(spec.mechanisms, **mechanisms), **own_fields)
