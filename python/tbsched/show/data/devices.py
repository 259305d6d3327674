"""Devices and partitions as what JSON can hold."""

from __future__ import annotations

from typing import Any

from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.differences import DeviceDiff, Difference
from tbsched.hardware.field import Field
from tbsched.hardware.spec import DeviceSpec, Provenance
from tbsched.program.partition import Partition, partition_to_data


def device_data(spec: DeviceSpec) -> dict[str, Any]:
    """Each field with its value, and where that comes from."""
    values = {field.path: _value(spec, field) for field in FIELDS if field.section}
    return {"name": spec.name, "title": spec.title, "values": values}


def _value(spec: DeviceSpec, field: Field) -> dict[str, Any]:
    return _sourced(field.of(spec), spec.provenance.get(field.path))


def _sourced(value: object, origin: Provenance | None) -> dict[str, Any]:
    kind, source = (None, None) if origin is None else (origin.kind, origin.source)
    return {"value": value, "provenance": kind, "source": source}


def device_diff_data(diff: DeviceDiff) -> dict[str, Any]:
    """Both devices by name, and the values that differ, or whose sources do."""
    return {
        "a": diff.a.name,
        "b": diff.b.name,
        "compared": diff.compared,
        "values": [_both(row) for row in diff.values],
        "sources": [_both(row) for row in diff.sources],
    }


def _both(row: Difference) -> dict[str, Any]:
    return {
        "path": row.path,
        "a": _sourced(row.a, row.a_origin),
        "b": _sourced(row.b, row.b_origin),
    }


def partition_data(partition: Partition) -> dict[str, Any]:
    """The partition as trace files hold it."""
    return partition_to_data(partition)
