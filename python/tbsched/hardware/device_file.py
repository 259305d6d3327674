"""Device files: TOML, every value with its provenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from tbsched import _core, parsing, storage
from tbsched.errors import did_you_mean, shown
from tbsched.hardware.device_fields import FIELDS, Mechanisms
from tbsched.hardware.field import Field, string
from tbsched.hardware.spec import DeviceSpec, Provenance

# What a file may write; INHERITED is what came by `extends`.
PROVENANCES = ("paper", "vendor", "measured", "assumed")
INHERITED = "inherited"
_MAX_BYTES = 2**20
_ROWS = {field.path: field for field in FIELDS if field.section}
_SECTIONS = {field.section for field in _ROWS.values()}

# A value with its provenance.
_Value = tuple[Any, Provenance]


def read(
    file: Traversable, named: Callable[[str], DeviceSpec], seen: tuple[str, ...] = ()
) -> DeviceSpec:
    """Returns the device that a file describes.

    Args:
        file: its name without ``.toml`` is the device's.
        named: gives the devices that it may extend by name.
        seen: the files that extend it, one through the other.

    Raises:
        ValueError: the file does not describe a device; names file and key.
    """
    data = _load(file)
    extends, checked = data.pop("extends", None), data.pop("checked", None)
    if checked is not None and extends is None:
        raise ValueError(f"{_shown(file)}: checked: nothing is inherited: there is no extends")
    parent = None if extends is None else _parent(extends, file, named, seen)
    checked = "" if checked is None else string(f"{_shown(file)}: checked", checked)
    own = _own(file, data)
    values = {field: _value(file, field, own, parent, checked) for field in _ROWS.values()}
    try:
        spec = assembled(storage.shown(file.name.removesuffix(".toml")), values)
        measured = [field.path for field, (_, origin) in own.items() if origin.kind == "measured"]
        _core.check_documented(spec, measured)
    except ValueError as error:
        raise ValueError(f"{_shown(file)}: {error}") from None
    return spec


def _load(file: Traversable) -> dict[str, Any]:
    """Returns the TOML of a file, as it stands."""
    try:
        held = storage.content(file, _MAX_BYTES) if isinstance(file, Path) else file.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"device: no file {storage.shown(str(file))}") from None
    except ValueError as error:
        raise ValueError(f"device: {error}") from None
    try:
        return parsing.toml_tables(held)
    except ValueError as error:
        raise ValueError(f"{_shown(file)}: not TOML: {error}") from None


def _parent(
    extends: object,
    file: Traversable,
    named: Callable[[str], DeviceSpec],
    seen: tuple[str, ...],
) -> DeviceSpec:
    """Returns the device that a file extends, and refuses circles."""
    here = str(file.resolve() if isinstance(file, Path) else file)
    if here in seen:
        raise ValueError(
            f"{_shown(file)}: extends itself, through {' -> '.join(map(storage.shown, seen))}"
        )
    name = string(f"{_shown(file)}: extends", extends)
    try:
        if name.endswith(".toml") and isinstance(file, Path):
            return read(file.parent / name, named, (*seen, here))
        return named(name)
    except ValueError as error:
        raise ValueError(f"{_shown(file)}: extends: {error}") from None


def _shown(file: Traversable) -> str:
    return storage.shown(str(file))


def _own(file: Traversable, sections: Mapping[str, object]) -> dict[Field, _Value]:
    """Returns the values that the file itself sets."""
    found: dict[Field, _Value] = {}
    for section, rows in sections.items():
        if not isinstance(rows, dict) or section not in _SECTIONS:
            raise ValueError(
                f"{_shown(file)}: unknown key {shown(section)}{did_you_mean(section, _SECTIONS)}"
            )
        for key, row in rows.items():
            path = f"{section}.{key}"
            if path not in _ROWS:
                raise ValueError(
                    f"{_shown(file)}: unknown key {shown(path)}{did_you_mean(path, _ROWS)}"
                )
            where = f"{_shown(file)}: {path}"
            value, origin = _row(where, row)
            found[_ROWS[path]] = (_ROWS[path].read(where, value), origin)
    return found


def _value(
    file: Traversable,
    field: Field,
    own: Mapping[Field, _Value],
    parent: DeviceSpec | None,
    checked: str,
) -> _Value:
    """Returns a field's value and source: the file's own, else inherited, else assumed."""
    if field in own:
        return own[field]
    if parent is not None:
        return field.of(parent), inherited(parent, field, checked)
    if field.because is None:
        raise ValueError(f"{_shown(file)}: {field.path!r} is missing")
    return _DEFAULTS[field.name], Provenance("assumed", f"the default: {field.because}")


def inherited(parent: DeviceSpec, field: Field, checked: str) -> Provenance:
    """Returns where a value of a parent comes from; what is assumed there, no recording checks."""
    origin = parent.provenance.get(field.path)
    is_shown = origin is not None and not origin.is_assumed
    return Provenance(INHERITED, parent.name, checked if is_shown else "")


_DEFAULTS = {item.name: item.default for item in (*fields(DeviceSpec), *fields(Mechanisms))}


def assembled(name: str, values: Mapping[Field, tuple[Any, Provenance]]) -> DeviceSpec:
    """Returns the device of these values, each with its source, for all fields of a file."""
    plain = {field.name: v for field, (v, _) in values.items() if not field.is_mechanism}
    switches = {field.name: v for field, (v, _) in values.items() if field.is_mechanism}
    provenance = {field.path: origin for field, (_, origin) in values.items()}
    mechanisms = Mechanisms(**switches)
    return DeviceSpec(name=name, mechanisms=mechanisms, provenance=provenance, **plain)


def _row(where: str, row: object) -> tuple[object, Provenance]:
    """Returns the value and the source that a row of a device file has."""
    if not isinstance(row, dict) or set(row) != {"value", "provenance", "source"}:
        raise ValueError(f"{where}: {{ value, provenance, source }} is needed, got {shown(row)}")
    if row["provenance"] not in PROVENANCES:
        raise ValueError(
            f"{where}: provenance {shown(row['provenance'])} is not one of {', '.join(PROVENANCES)}"
            f"{did_you_mean(row['provenance'], PROVENANCES)}"
        )
    return row["value"], Provenance(row["provenance"], string(f"{where}.source", row["source"]))
