"""The simulated GPU: a value for each parameter, and where it comes from."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tbsched import _core, parsing, storage
from tbsched.errors import did_you_mean, shown
from tbsched.hardware.spec import Provenance
from tbsched.program.checks import integer, known_fields

_MAX_BYTES = 2**20
_PROVENANCES = ("paper", "vendor", "measured", "assumed")
_CHANGED = Provenance("assumed", "changed by the caller")


class Parameter(NamedTuple):
    """A parameter as C++ declares it."""

    section: str
    name: str
    least: int
    greatest: int
    default: int
    doc: str

    @property
    def is_flag(self) -> bool:
        """Whether it is True or False."""
        return (self.least, self.greatest) == (0, 1)


PARAMETERS = {row[1]: Parameter(*row) for row in _core.sm_parameters()}


@dataclass(frozen=True, slots=True, repr=False)
class Config:
    """A simulated GPU.

    Attributes:
        name: of the file that it was read from; with what was changed since.
        values: an integer for each parameter; 0 or 1 where it is a flag.
        provenance: of each value, whether a ``paper``, a ``vendor`` or a measurement says it
            (``measured``), or nobody (``assumed``); and where.

    Example:
        >>> gpu = tb.sm.config("owl-table1")
        >>> gpu["cores"], gpu["t_cl"], gpu.provenance["t_wl"].kind
        (28, 10, 'assumed')
    """

    name: str
    values: Mapping[str, int]
    provenance: Mapping[str, Provenance]

    def __getitem__(self, name: str) -> int:
        return self.values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __repr__(self) -> str:
        return f"<Config: {self.name}, {self['cores']} cores, {self['controllers']} controllers>"

    def __reduce__(self) -> tuple[object, ...]:
        return _config, (self.name, dict(self.values), dict(self.provenance))

    def changed(self, **values: int) -> Config:
        """Returns the configuration with other values, which its name lists.

        Args:
            values: by parameter.

        Raises:
            TypeError, ValueError: an unknown parameter, or a value out of range.

        Example:
            >>> tb.sm.config("owl-table1").changed(banks=8).name
            'owl-table1, banks=8'
        """
        checked = {name: _checked(name, value) for name, value in values.items()}
        origins = dict.fromkeys(checked, _CHANGED)
        return replace(
            self,
            name=", ".join([self.name, *(f"{name}={value}" for name, value in checked.items())]),
            values=MappingProxyType({**self.values, **checked}),
            provenance=MappingProxyType({**self.provenance, **origins}),
        )


def _config(name: str, values: dict[str, int], provenance: dict[str, Provenance]) -> Config:
    return Config(name, MappingProxyType(values), MappingProxyType(provenance))


def config(name: str | os.PathLike[str] | Config) -> Config:
    """Returns a simulated GPU by name, or from a file.

    Args:
        name: a shipped name (:func:`configs`), the path of a ``.toml`` file, or a config, which is
            returned as it is.

    Raises:
        TypeError: neither a name, a path nor a config.
        ValueError: no such config, or a file that does not describe one; names file and parameter.

    Example:
        >>> tb.sm.config("h200-like")["cores"]
        132
    """
    if isinstance(name, Config):
        return name
    if not isinstance(name, str | os.PathLike):
        raise TypeError(f"config: a name, a path or a Config is needed, got {shown(name)}")
    text = os.fspath(name)
    if text.endswith(".toml"):
        return _read(Path(text))
    return _shipped(text)


def configs() -> tuple[str, ...]:
    """Returns the names of the shipped configs.

    Example:
        >>> tb.sm.configs()
        ('h100-like', 'h200-like', 'owl-table1')
    """
    return tuple(sorted(_files()))


@functools.cache
def _files() -> dict[str, Traversable]:
    folder = resources.files("tbsched.sm") / "configs"
    return {file.name.removesuffix(".toml"): file for file in folder.iterdir()}


@functools.cache
def _shipped(name: str) -> Config:
    """Returns a configuration that the package ships."""
    if name not in _files():
        raise ValueError(
            f"config: {shown(name)} is unknown; there are {', '.join(configs())}"
            f"{did_you_mean(name, configs())}"
        )
    return _read(_files()[name])


def _read(file: Traversable) -> Config:
    """Returns the configuration of a file."""
    try:
        content = storage.content(file, _MAX_BYTES) if isinstance(file, Path) else file.read_bytes()
        data = parsing.toml_tables(content)
        return _described(storage.shown(file.name.removesuffix(".toml")), data)
    except FileNotFoundError:
        raise ValueError(f"config: no file {storage.shown(str(file))}") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"config: {storage.shown(str(file))}: {error}") from None


def _described(name: str, data: dict[str, Any]) -> Config:
    """Returns the configuration of a file's tables, with the source of each value."""
    sections = {row.section for row in PARAMETERS.values()}
    known_fields("file", data, sections, sections)
    values: dict[str, int] = {}
    provenance: dict[str, Provenance] = {}
    for section in sections:
        names = [row.name for row in PARAMETERS.values() if row.section == section]
        rows = known_fields(section, data[section], names, names)
        for key, row in rows.items():
            key_path = f"{section}.{key}"
            fields = ("value", "provenance", "source")
            known_fields(key_path, row, fields, fields)
            if row["provenance"] not in _PROVENANCES:
                raise ValueError(f"{key_path}: provenance is none of {', '.join(_PROVENANCES)}")
            values[key] = _checked(key, row["value"])
            provenance[key] = Provenance(row["provenance"], str(row["source"]))
    ordered = {key: values[key] for key in PARAMETERS}
    return _config(name, ordered, provenance)


def _checked(name: str, value: object) -> int:
    """Returns the value of a parameter as an integer within its limits."""
    if name not in PARAMETERS:
        raise ValueError(
            f"config: {shown(name)} is no parameter; there are {', '.join(PARAMETERS)}"
            f"{did_you_mean(name, PARAMETERS)}"
        )
    row = PARAMETERS[name]
    if row.is_flag and isinstance(value, bool):
        return int(value)
    return integer("config", name, value, row.least, row.greatest)
