"""A device as a C++ header, for simulators that embed the predictor without Python."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable
from typing import Any

from tbsched.errors import shown
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.field import Field
from tbsched.hardware.spec import DeviceSpec

_WIDTH = 100


def cpp_header(spec: DeviceSpec) -> str:
    """Returns a C++ header with ``inline tbsched::DeviceSpec NAME()``.

    Args:
        spec: a device; characters of its name that C++ does not allow become underscores.

    Raises:
        TypeError: not a spec.
    """
    if not isinstance(spec, DeviceSpec):
        raise TypeError(f"cpp_header: a DeviceSpec is needed, got {shown(spec)}")
    members: dict[str, str] = {}
    switches: dict[str, str] = {}
    for field in FIELDS:
        holder, indent = (switches, 14) if field.is_mechanism else (members, 10)
        holder[field.name] = _value(field, field.of(spec), indent)
        if field.is_mechanism:
            members["mechanisms"] = _braces(switches, 10)
    title = spec.title.encode("ascii", "replace").decode()
    return (
        f"// {' '.join(title.split())}, written by `tbsched devices --cpp`.\n"
        "// clang-format off\n"
        "#pragma once\n\n"
        '#include "tbsched/hardware/device_spec.h"\n\n'
        f"inline tbsched::DeviceSpec {_identifier(spec.name)}() {{\n"
        f"  return {_braces(members, 6)};\n"
        "}\n"
    )


def _identifier(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return plain if plain[:1].isalpha() else f"device_{plain}"


def _string(text: str) -> str:
    """Returns a C++ literal; octal escapes end after three digits, whatever follows."""
    quoted = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "replace")
    )
    return f'"{"".join(quoted)}"'


def _value(field: Field, value: Any, indent: int) -> str:
    """Returns a value of a field as C++."""
    if field.type == "string":
        return _string(value)
    if field.type == "layout":
        return f"tbsched::Layout::{value}"
    if field.type == "rows":
        return _list((_list(map(str, row), indent + 4) for row in value), indent)
    if isinstance(value, tuple):
        return _list(map(str, value), indent)
    return json.dumps(value)


def _list(values: Iterable[str], indent: int) -> str:
    """Returns a C++ initializer list, wrapped if it is too long for a line."""
    row = "{" + ", ".join(values) + "}"
    if len(row) + indent + 36 <= _WIDTH:
        return row
    pad = " " * indent
    lines = textwrap.wrap(row[1:-1], _WIDTH - indent, break_on_hyphens=False)
    return "{\n" + "".join(f"{pad}{line}\n" for line in lines) + pad[:-4] + "}"


def _braces(members: dict[str, str], indent: int) -> str:
    pad = " " * indent
    rows = "".join(f"{pad}.{name} = {value},\n" for name, value in members.items())
    return "{\n" + rows + pad[:-4] + "}"
