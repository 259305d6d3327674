"""A calibrated device as a device file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from tbsched.calibration.draft import PROVENANCES, source
from tbsched.calibration.finding import Finding
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.spec import DeviceSpec


def device_toml(spec: DeviceSpec, report: Iterable[Finding]) -> str:
    """The text of a device file; what nobody asked for is left out, and has its default."""
    found = {finding.path: finding for finding in report}
    rows = [
        "[device]",
        _row("title", _text(spec.title), "measured", "the oracle says so"),
        _row(
            "compute_capability", _text(spec.compute_capability), "measured", "the oracle says so"
        ),
    ]
    fields = [field for field in FIELDS if field.path in found]
    for section, members in groupby(fields, key=lambda field: field.section):
        rows.append(f"\n[{section}]")
        for field in members:
            finding = found[field.path]
            kind = PROVENANCES[finding.kind]
            value = _value(field.type, field.of(spec))
            rows.append(_row(field.name, value, kind, source(finding)))
    return "# Written by `tbsched calibrate`.\n\n" + "\n".join(rows) + "\n"


def _row(name: str, value: str, kind: str, where: str) -> str:
    return f'{name} = {{ value = {value}, provenance = "{kind}", source = {_text(where)} }}'


def _text(words: str) -> str:
    # JSON's escapes are among TOML's, but for the one of DEL, which nobody needs.
    return json.dumps(words.replace("\x7f", ""))


def _value(kind: str, value: Any) -> str:
    if kind == "ranges":
        return json.dumps(_as_ranges(value))
    return json.dumps(value)


def _as_ranges(numbers: tuple[int, ...]) -> list[list[int]]:
    """As [start, stop, step], as few as going from left to right finds."""
    rows: list[list[int]] = []
    position = 0
    while position < len(numbers):
        end = position + 1
        step = numbers[end] - numbers[position] if end < len(numbers) else 1
        while end < len(numbers) and numbers[end] - numbers[end - 1] == step:
            end += 1
        last = numbers[end - 1]
        rows.append([numbers[position], last + (1 if step > 0 else -1), step])
        position = end
    return rows
