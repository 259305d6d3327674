"""Values of the program and of traces as what JSON can hold."""

from __future__ import annotations

from typing import Any

from tbsched.program.arrays import StructuredArray
from tbsched.traces.placement import DeviceInfo


def info_data(info: DeviceInfo) -> dict[str, Any]:
    """As the header of a trace file has it."""
    return {"name": info.name, "sms": info.sms, **info.details}


def rows_data(table: StructuredArray) -> list[dict[str, Any]]:
    """An object per row of a structured array."""
    names = table.dtype.names or ()
    columns = [table[name].tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
