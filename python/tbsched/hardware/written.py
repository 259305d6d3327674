"""A device as a device file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import groupby

from tbsched.errors import shown
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.device_file import INHERITED
from tbsched.hardware.field import Field
from tbsched.hardware.spec import DeviceSpec, Provenance
from tbsched.program.checks import instance
from tbsched.storage import as_path, replacing


def save_device(
    path: str | os.PathLike[str], device: DeviceSpec, *, heading: str = "Written by tbsched."
) -> None:
    """Writes a device file. It needs no other file: what was inherited is `assumed` there, or
    `measured` if it was checked.

    A value of which the device does not know the source is left out, and has its default.

    Args:
        path: of the file, which ends in ``.toml``.
        device: what it describes.
        heading: a comment at its top.

    Raises:
        TypeError: not a device.
        OSError: it cannot be written.

    Example:
        >>> tb.save_device("mine.toml", tb.device("rtx3090-no-warp-skip"))
        >>> tb.device("mine.toml").mechanisms.warp_skip
        False
    """
    if not isinstance(device, DeviceSpec):
        raise TypeError(f"save_device: a DeviceSpec is needed, got {shown(device)}")
    instance("save_device", "heading", heading, str)
    origins = {key: _alone(origin) for key, origin in device.provenance.items()}
    text = device_toml(device, origins, heading)
    with replacing(as_path(path)) as file:
        file.write(text.encode())


def device_toml(
    spec: DeviceSpec, origins: Mapping[str, Provenance], heading: str, extends: str = ""
) -> str:
    """Returns the text of a device file with the values of which ``origins`` has a source."""
    comment = "".join(f"# {line}".rstrip() + "\n" for line in heading.splitlines())
    rows = [comment]
    if extends:
        rows.append(f"extends = {_text(extends)}\n")
    known = [field for field in FIELDS if field.path in origins]
    for section, fields in groupby(known, key=lambda field: field.section):
        rows.append(f"[{section}]")
        rows += [_row(field, spec, origins[field.path]) for field in fields]
        rows.append("")
    return "\n".join(rows)


def _alone(origin: Provenance) -> Provenance:
    """Returns the source of a value in a file that inherits nothing."""
    if origin.kind != INHERITED:
        return origin
    if origin.checked:
        return Provenance("measured", f"as on {origin.source}: {origin.checked}")
    return Provenance("assumed", f"as on {origin.source}")


def _row(field: Field, spec: DeviceSpec, origin: Provenance) -> str:
    """Returns the line of one field in a device file."""
    value = field.of(spec)
    text = json.dumps(_as_ranges(value) if field.type == "ranges" else value)
    if isinstance(value, str):
        text = _text(value)
    return (
        f'{field.name} = {{ value = {text}, provenance = "{origin.kind}", '
        f"source = {_text(origin.source)} }}"
    )


def _text(words: str) -> str:
    # JSON's escapes are among TOML's, but for the one of DEL, which nobody needs.
    return json.dumps(words.replace("\x7f", ""))


def _as_ranges(numbers: tuple[int, ...]) -> list[list[int]]:
    """Returns numbers as ranges [start, stop, step], each as long as possible from the left."""
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
