"""Devices as text."""

from __future__ import annotations

from tbsched.hardware.spec import DeviceSpec


def device_short(spec: DeviceSpec) -> str:
    """Its name, size and policy."""
    return f"{spec.name}, {spec.title}, {spec.sms} SMs, policy {spec.policy}"


def device_text(spec: DeviceSpec) -> str:
    """Every value that its file states or inherits, and the source of it."""
    lines = [f"{spec.name}: {spec.title}"]
    for key, origin in spec.provenance.items():
        field = key.rsplit(".", 1)[1]
        holder = spec.mechanisms if key.startswith("mechanisms.") else spec
        lines.append(f"  {key} = {getattr(holder, field)}  [{origin.kind}: {origin.source}]")
    return "\n".join(lines)
