"""Devices and partitions as text."""

from __future__ import annotations

from collections.abc import Iterator

from tbsched.hardware.spec import DeviceSpec, Provenance
from tbsched.program.partition import Partition
from tbsched.show.words import counted, sms_words


def device_short(spec: DeviceSpec) -> str:
    """Its name, size and policy."""
    return f"{spec.name}, {spec.title}, {spec.sms} SMs, policy {spec.policy}"


def device_text(spec: DeviceSpec) -> str:
    """Every value that its file states or inherits, and the source of it."""
    lines = [f"{spec.name}: {spec.title}"]
    for key, value, origin in values_of(spec):
        lines.append(f"  {key} = {value}  [{origin.kind}: {origin.source}]")
    return "\n".join(lines)


def values_of(spec: DeviceSpec) -> Iterator[tuple[str, object, Provenance]]:
    """Every value whose source is known: its key in the file, itself and the source."""
    for key, origin in spec.provenance.items():
        field = key.rsplit(".", 1)[1]
        holder = spec.mechanisms if key.startswith("mechanisms.") else spec
        yield key, getattr(holder, field), origin


def partition_short(partition: Partition) -> str:
    """How many SMs it has, and which part of which split it is."""
    words = counted(len(partition), "SM")
    if partition.split is None:
        return words
    part = "what is left over" if partition.group is None else f"group {partition.group}"
    return f"{words}, {part} of {partition.split}"


def partition_text(partition: Partition) -> str:
    """Its SMs."""
    return f"{partition_short(partition)}\nSM {sms_words(partition.sms) or 'none'}"
