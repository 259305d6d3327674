"""Values that users give, checked; the messages name the field, the value and the limit."""

from __future__ import annotations

import operator
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, SupportsIndex, TypeVar, cast

import numpy as np
import numpy.typing as npt

from tbsched.errors import did_you_mean, shown

MAX_SECONDS = 1e9
_READERS = {
    "Program": "load_program(path) reads one",
    "Trace": "load_traces(path) reads them",
    "Sequence": "Sequence.from_json(text) reads one; load_program(path).sequence is a profile's",
}
Value = TypeVar("Value")


def integer(owner: str, field: str, value: object, low: int, high: int) -> int:
    """Returns a whole number within ``low..high`` as a plain int.

    Raises:
        TypeError, ValueError: naming ``owner.field``.
    """
    if type(value) is int and low <= value <= high:
        return value
    if isinstance(value, bool):
        raise TypeError(f"{owner}.{field}: an integer is needed, got {shown(value)}")
    try:
        index = operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise TypeError(f"{owner}.{field}: an integer is needed, got {shown(value)}") from None
    if not low <= index <= high:
        raise ValueError(f"{owner}.{field}: {shown(index)} is outside {low}..{high}")
    return index


def seconds(owner: str, field: str, value: object) -> float:
    """Returns seconds within ``0..MAX_SECONDS`` as a plain float.

    Raises:
        TypeError, ValueError: naming ``owner.field``.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{owner}.{field}: seconds are needed, got {shown(value)}")
    if not 0 <= value <= MAX_SECONDS:
        raise ValueError(f"{owner}.{field}: {shown(value)} is outside 0..1e9 seconds")
    return float(value)


def known_fields(
    where: str, data: object, known: Collection[str], required: Iterable[str]
) -> dict[str, Any]:
    """Returns the fields of an object of a file.

    Raises:
        TypeError, ValueError: no object; one without a field that is needed, or with another.
    """
    if not isinstance(data, dict):
        raise TypeError(f"{where}: an object is needed, got {shown(data)}")
    missing = [field for field in required if field not in data]
    if missing:
        raise ValueError(f"{where}: {missing[0]} is missing")
    for key in data:
        if key not in known:
            raise ValueError(
                f"{where}: {shown(key)} is unknown; there are {', '.join(known)}"
                f"{did_you_mean(key, known)}"
            )
    return dict(data)


def instance(owner: str, field: str, value: object, kind: type[Value]) -> Value:
    """Returns the value, which is of a class.

    Raises:
        TypeError: naming ``owner.field``.
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise TypeError(
            f"{owner}.{field}: {article} {kind.__name__} is needed, got {shown(value)}"
            f"{reader_of(kind, value)}"
        )
    return value


def instances(
    owner: str, field: str, value: Iterable[Value], kind: type[Value]
) -> tuple[Value, ...]:
    """Returns the values of a list, all of a class; each is checked before the next is taken.

    Raises:
        TypeError: naming ``owner.field`` and the place in the list.
    """
    return tuple(
        instance(owner, f"{field}[{index}]", item, kind)
        for index, item in enumerate(items(owner, field, value))
    )


def array(owner: str, field: str, value: object) -> npt.NDArray[Any]:
    """Checks that a value is a NumPy array, and returns it.

    Raises:
        TypeError: naming ``owner.field``.
    """
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{owner}.{field}: an array is needed, got {shown(value)}")
    return value


def reader_of(kind: type, value: object) -> str:
    """What reads a value of a class, where the path of a file was given for one; else nothing."""
    is_path = isinstance(value, str | os.PathLike) and kind.__name__ in _READERS
    return f"; {_READERS[kind.__name__]}" if is_path else ""


def flag(owner: str, field: str, value: object) -> bool:
    """Checks that a value is True or False, and returns it.

    Raises:
        TypeError: naming ``owner.field``.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{owner}.{field}: True or False is needed, got {shown(value)}")
    return value


def items(owner: str, field: str, value: Iterable[Value]) -> Iterable[Value]:
    """Checks that a value is iterable, and neither text nor a mapping.

    Raises:
        TypeError: naming ``owner.field``.
    """
    try:
        iter(value)  # an array of no dimension cannot, though it is an Iterable
    except TypeError:
        is_list = False
    else:
        is_list = not isinstance(value, str | bytes | Mapping)
    if not is_list:
        raise TypeError(f"{owner}.{field}: a list is needed, got {shown(value)}")
    return value
