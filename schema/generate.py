"""Writes what follows from two tables; a test checks that all of it is fresh.

    python schema/generate.py

schema/device.toml: the C++ struct with its visitor, the Python dataclasses, the table in
docs/reference/devices.md.
python/tbsched/hardware/compute_capabilities.toml: the C++ table, and the one in
docs/reference/devices.md.
"""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STRUCT = Path("cpp/tbsched/hardware/device_spec.h")
LIMITS = Path("cpp/tbsched/hardware/documented_limits.h")
DOCUMENTED = Path("python/tbsched/hardware/compute_capabilities.toml")
ABLATIONS = Path("python/tbsched/hardware/devices/ablations.toml")
DATACLASSES = Path("python/tbsched/hardware/device_fields.py")
PAGE = Path("docs/reference/devices.md")
WIDTH = 100

# type of a row -> of a C++ member, of a Python attribute, in words
TYPES = {
    "int": ("int32_t", "int", "integer"),
    "ns": ("int64_t", "int", "nanoseconds"),
    "bool": ("bool", "bool", "true or false"),
    "string": ("std::string", "str", "string"),
    "layout": ("Layout", "str", "`contiguous`, `circular` or `pooled`"),
    "ints": ("std::vector<int32_t>", "tuple[int, ...]", "list of integers"),
    "rows": ("std::vector<std::vector<int32_t>>", "tuple[tuple[int, ...], ...]", "list of lists"),
    "ranges": ("std::vector<int32_t>", "tuple[int, ...]", "list of `[start, stop, step]`"),
}


@dataclass(frozen=True)
class Row:
    """One field of a device."""

    section: str
    name: str
    type: str
    doc: str
    range: tuple[int, int] | None = None
    default: Any = None
    because: str | None = None
    rule: str = ""
    when: str = ""

    @property
    def is_mechanism(self) -> bool:
        return self.section == "mechanisms"

    @property
    def cpp_default(self) -> str:
        if self.because is None:
            return {"int32_t": " = 0", "int64_t": " = 0", "bool": " = false"}.get(
                TYPES[self.type][0], "{}" if self.type == "layout" else ""
            )
        return "" if isinstance(self.default, list) else f" = {json.dumps(self.default)}"

    @property
    def python_default(self) -> str:
        if self.because is None:
            return ""
        return " = ()" if isinstance(self.default, list) else f" = {self.default!r}"


def rows() -> list[Row]:
    """The rows of device.toml, in its order."""
    data = tomllib.loads((ROOT / "schema" / "device.toml").read_text("utf-8"))
    found = [Row("", key, **row) for key, row in data.items() if "type" in row]
    for section, keys in data.items():
        if "type" not in keys:
            found += [Row(section, key, **row) for key, row in keys.items()]
    for row in found:
        assert (row.range is not None) == (row.type in ("int", "ns")), row
        assert (row.default is not None) == (row.because is not None), row
    return found


def documented() -> list[tuple[str, dict[str, int | list[int]]]]:
    """Returns each compute capability with its documented fields."""
    data = tomllib.loads((ROOT / DOCUMENTED).read_text("utf-8"))
    common = data.pop("common")
    names = {row.name for row in rows()}
    return [
        (capability, {key: value for key, value in {**common, **own}.items() if key in names})
        for capability, own in data.items()
    ]


def _comment(text: str) -> str:
    start = "  // "
    return textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=start) + "\n"


def _members(found: list[Row], member: Callable[[Row], str], mechanisms: str) -> str:
    """Those of a device: its mechanisms are one member, where the first of them has its row."""
    first = next(row for row in found if row.is_mechanism)
    return "".join(
        mechanisms if row == first else member(row)
        for row in found
        if not row.is_mechanism or row == first
    )


def struct() -> str:
    """The C++ header of a device."""
    found = rows()
    switches = [row for row in found if row.is_mechanism]

    def member(row: Row) -> str:
        return _comment(row.doc) + f"  {TYPES[row.type][0]} {row.name}{row.cpp_default};\n"

    fields = _members(found, member, "  Mechanisms mechanisms;\n")
    ranges = "".join(
        f"inline constexpr Range {row.name}{{{row.range[0]}, {row.range[1]}}};\n"
        for row in found
        if row.range
    )
    return f"""\
// A GPU as data. Written by schema/generate.py from schema/device.toml.
// clang-format off
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tbsched/hardware/field.h"

namespace tbsched {{

// What the arithmetic of the core is built for.
namespace ranges {{
{ranges}}}  // namespace ranges

inline constexpr int32_t kMaxProcessingBlocks = ranges::processing_blocks.high;
inline constexpr int32_t kMaxWarpsPerSm = ranges::warps_per_sm.high;

// Which mechanisms act (numbers: sections IV-A to IV-D of the ICCD 2023 paper). Switching one off
// is how an ablation is written.
struct Mechanisms {{
{"".join(map(member, switches))}}};

// check() says whether it makes sense.
struct DeviceSpec {{
{fields}}};

// Calls visit(field, member) for each, in order; those of `mechanisms` are among them.
template <typename Spec, typename Visit>
void for_each_field(Spec& spec, Visit&& visit) {{
{"".join(map(_visit, found))}}}

}}  // namespace tbsched
"""


def _visit(row: Row) -> str:
    parts = [f'.section = "{row.section}"', f'.name = "{row.name}"']
    if row.range:
        parts.append(f".range = ranges::{row.name}")
    if row.because is not None:
        parts.append(".required = false")
    if row.type == "ranges":
        parts.append(".as_ranges = true")
    holder = "spec.mechanisms" if row.is_mechanism else "spec"
    return f"  visit(Field{{{', '.join(parts)}}}, {holder}.{row.name});\n"


def limits_header() -> str:
    """The C++ header of what is documented, but for what an ablation changes on purpose."""
    ablations = tomllib.loads((ROOT / ABLATIONS).read_text("utf-8"))
    changed = {name for row in ablations.values() for name in row}
    table = "".join(
        f'    DocumentedLimit{{"{capability}", "{name}", {each}}},\n'
        for capability, limits in documented()
        for name, value in limits.items()
        if name not in changed
        for each in (value if isinstance(value, list) else [value])
    )
    return f"""\
// What NVIDIA documents per compute capability. Written by schema/generate.py from
// {DOCUMENTED}, which names the sources. What an ablation
// changes is left out.
// clang-format off
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tbsched {{

struct DocumentedLimit {{
  std::string_view compute_capability;
  std::string_view field;  // a list has a row for each value that it may have, ascending
  int32_t value;
}};

inline constexpr std::array kDocumentedLimits = {{
{table}}};

}}  // namespace tbsched
"""


def dataclasses() -> str:
    """The Python module of the fields."""
    found = rows()
    switches = [row for row in found if row.is_mechanism]
    plain = [row for row in found if not row.is_mechanism]

    def attributes(several: list[Row]) -> str:
        first, rest = " " * 8, " " * 12
        texts = (f"{row.name}: {row.doc}." for row in several)
        filled = (
            textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=rest)
            for text in texts
        )
        return "\n".join(filled) + "\n"

    def member(row: Row) -> str:
        return f"    {row.name}: {TYPES[row.type][1]}{row.python_default}\n"

    fields = _members(found, member, "    mechanisms: Mechanisms\n")
    table = "".join(
        f"    Field({json.dumps(row.section)}, {json.dumps(row.name)}, {json.dumps(row.type)}"
        + (f", {json.dumps(row.because)}" if row.because is not None else "")
        + (f", rule={json.dumps(row.rule)}" if row.rule else "")
        + (f", when={json.dumps(row.when)}" if row.when else "")
        + "),\n"
        for row in found
    )
    return f'''\
"""What a device is made of. Written by schema/generate.py from schema/device.toml."""

# fmt: off
# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass

from tbsched.hardware.field import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanisms:
    """Which scheduling mechanisms act (numbers: sections IV-A to IV-D of the ICCD 2023 paper).

    Attributes:
{attributes(switches)}    """

{"".join(map(member, switches))}

@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFields:
    """The values of a GPU as the predictor sees it. Sizes in bytes, registers of 32 bits.

    Attributes:
{attributes(plain)}        mechanisms: which mechanisms act.
    """

{fields}

# In the order of the C++ struct; those of Mechanisms are among them.
FIELDS: tuple[Field, ...] = (
{table})
'''


def _cells(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


def fields_table() -> str:
    """All fields, for the documentation."""
    text = _cells("section", "field", "type", "range", "default", "meaning") + _cells(*["---"] * 6)
    for row in rows():
        if row.section:
            low_high = "" if row.range is None else f"{row.range[0]} to {row.range[1]}"
            default = "" if row.because is None else f"`{json.dumps(row.default)}`"
            kind = TYPES[row.type][2]
            text += _cells(f"`{row.section}`", f"`{row.name}`", kind, low_high, default, row.doc)
    return text


def documented_table() -> str:
    """What is documented, for the documentation: a row per compute capability."""
    known = documented()
    names = list(dict.fromkeys(name for _, limits in known for name in limits))
    text = _cells("", *(f"`{name}`" for name in names)) + _cells(*["---"] * (len(names) + 1))
    for capability, limits in known:
        text += _cells(capability, *(_listed(limits.get(name, "")) for name in names))
    return text


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def page() -> str:
    """docs/reference/devices.md with its two tables replaced."""
    text = (ROOT / PAGE).read_text("utf-8")
    for marker, table in (("fields", fields_table()), ("documented", documented_table())):
        begin, end = f"<!-- {marker}:begin -->\n", f"<!-- {marker}:end -->\n"
        before, rest = text.split(begin)
        text = before + begin + table + end + rest.split(end)[1]
    return text


def generated() -> dict[Path, str]:
    """What each generated file, by its path in the repository, should say."""
    return {
        STRUCT: struct(),
        LIMITS: limits_header(),
        DATACLASSES: dataclasses(),
        PAGE: page(),
    }


if __name__ == "__main__":
    for path, text in generated().items():
        (ROOT / path).write_text(text, "utf-8")
