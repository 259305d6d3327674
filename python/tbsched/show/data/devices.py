"""Devices and partitions as what JSON can hold."""

from __future__ import annotations

from typing import Any

from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.field import Field
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.partition import Partition, partition_to_data


def device_data(spec: DeviceSpec) -> dict[str, Any]:
    """Each field with its value, and where that comes from."""
    values = {field.path: _value(spec, field) for field in FIELDS if field.section}
    return {"name": spec.name, "title": spec.title, "values": values}


def _value(spec: DeviceSpec, field: Field) -> dict[str, Any]:
    origin = spec.provenance.get(field.path)
    kind, source = (None, None) if origin is None else (origin.kind, origin.source)
    return {"value": field.of(spec), "provenance": kind, "source": source}


def partition_data(partition: Partition) -> dict[str, Any]:
    """The partition as trace files hold it."""
    return partition_to_data(partition)
