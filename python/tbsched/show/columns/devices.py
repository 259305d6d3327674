"""Devices as a table: a row per field."""

from __future__ import annotations

import json
from typing import Any

from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.differences import DeviceDiff
from tbsched.hardware.spec import DeviceSpec


def device_columns(spec: DeviceSpec) -> dict[str, Any]:
    """Each field with its value, as JSON, and where that comes from."""
    fields = [field for field in FIELDS if field.section]
    origins = [spec.provenance.get(field.path) for field in fields]
    return {
        "field": [field.path for field in fields],
        "value": [json.dumps(field.of(spec)) for field in fields],
        "provenance": [None if origin is None else origin.kind for origin in origins],
        "source": [None if origin is None else origin.source for origin in origins],
    }


def device_diff_columns(diff: DeviceDiff) -> dict[str, Any]:
    """Each value that differs, as JSON, and where both come from."""
    a_origins = [row.a_origin for row in diff.values]
    b_origins = [row.b_origin for row in diff.values]
    return {
        "field": [row.path for row in diff.values],
        "a": [json.dumps(row.a) for row in diff.values],
        "b": [json.dumps(row.b) for row in diff.values],
        "a_provenance": [None if origin is None else origin.kind for origin in a_origins],
        "b_provenance": [None if origin is None else origin.kind for origin in b_origins],
        "a_source": [None if origin is None else origin.source for origin in a_origins],
        "b_source": [None if origin is None else origin.source for origin in b_origins],
    }
