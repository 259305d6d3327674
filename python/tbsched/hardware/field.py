"""What the rows of ``schema/device.toml`` are made of: fields, and the types that they can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tbsched.errors import shown

MOST_IN_RANGES = 65_536  # SMs: schema/device.toml


class Field(NamedTuple):
    """One value of a device.

    Attributes:
        section: of a device file; empty for what is not in it.
        name: the attribute, and the key in the file.
        type: a row of :data:`TYPES`.
        because: why a file need not name it, the reason for its default; None: it must.
        rule: the rule of the scheduler that it is of, in words; empty: no prediction rests on it.
        when: what a program must have for its prediction to rest on the rule; empty: nothing.
    """

    section: str
    name: str
    type: str
    because: str | None = None
    rule: str = ""
    when: str = ""

    @property
    def path(self) -> str:
        """Its name in a device file and in ``DeviceSpec.provenance``, with the section."""
        return f"{self.section}.{self.name}"

    def of(self, spec: Any) -> Any:
        """Its value in a device."""
        return getattr(spec.mechanisms if self.is_mechanism else spec, self.name)

    @property
    def is_mechanism(self) -> bool:
        """Whether the device's mechanisms have it, not the device itself."""
        return self.section == "mechanisms"

    def check(self, value: object) -> None:
        """Refuses a value of another type.

        Raises:
            TypeError: naming the field and the value.
        """
        holds, needed, _ = TYPES[self.type]
        if not holds(value):
            label = self.path if self.is_mechanism else self.name
            raise TypeError(f"{label}: {needed} is needed, got {shown(value)}")

    def read(self, where: str, value: object) -> Any:
        """Returns the value that a device file gives as ``value``.

        Raises:
            ValueError: it has another type; the message begins with `where`.
        """
        return TYPES[self.type].read(where, value)


class Type(NamedTuple):
    """How values of a type look, in Python and in a device file."""

    holds: Callable[[object], bool]
    needed: str
    read: Callable[[str, object], Any]


def string(where: str, value: object) -> str:
    """Returns the value, which must be a string."""
    if not isinstance(value, str):
        raise ValueError(f"{where}: a string is needed, got {shown(value)}")
    return value


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_whole(value: object) -> bool:
    return isinstance(value, tuple) and all(map(_is_whole, value))


def _are_rows(value: object) -> bool:
    return isinstance(value, tuple) and all(map(_are_whole, value))


def _flag(where: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{where}: true or false is needed, got {shown(value)}")
    return value


def _whole(where: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{where}: an integer is needed, got {shown(value)}")
    return value


def _whole_list(where: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{where}: a list is needed, got {shown(value)}")
    return tuple(_whole(where, item) for item in value)


def _nested_list(where: str, value: object) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list):
        raise ValueError(f"{where}: a list of lists is needed, got {shown(value)}")
    return tuple(_whole_list(where, row) for row in value)


def _ranges(where: str, value: object) -> tuple[int, ...]:
    """Returns the SMs of rows of [start, stop, step], each as Python's range."""
    if not isinstance(value, list):
        raise ValueError(f"{where}: a list of [start, stop, step] is needed, got {shown(value)}")
    rows = [_whole_list(where, row) for row in value]
    if any(len(row) != 3 or row[2] == 0 or max(map(abs, row)) > 10**6 for row in rows):
        raise ValueError(f"{where}: each row must be [start, stop, step], got {shown(value)}")
    if sum(len(range(*row)) for row in rows) > MOST_IN_RANGES:
        raise ValueError(
            f"{where}: the rows have more than {MOST_IN_RANGES} SMs, the most of a device"
        )
    return tuple(sm for row in rows for sm in range(*row))


_TUPLE = "a tuple of integers"

# By the names that schema/device.toml has for them.
TYPES: dict[str, Type] = {
    "int": Type(_is_whole, "an integer", _whole),
    "ns": Type(_is_whole, "an integer", _whole),
    "bool": Type(_is_flag, "True or False", _flag),
    "string": Type(_is_string, "a string", string),
    "layout": Type(_is_string, "a string", string),
    "ints": Type(_are_whole, _TUPLE, _whole_list),
    "rows": Type(_are_rows, "a tuple of tuples of integers", _nested_list),
    "ranges": Type(_are_whole, _TUPLE, _ranges),
}
