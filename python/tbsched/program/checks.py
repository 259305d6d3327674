"""Values that users give, checked; the messages name the field, the value and the limit."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable
from typing import Any, SupportsIndex, cast

from tbsched.errors import did_you_mean

MAX_SECONDS = 1e9


def integer(owner: str, field: str, value: object, low: int, high: int) -> int:
    """A whole number within ``low..high`` as a plain int.

    Raises:
        TypeError, ValueError: naming ``owner.field``.
    """
    if type(value) is int and low <= value <= high:
        return value
    if isinstance(value, bool):
        raise TypeError(f"{owner}.{field}: an integer is needed, got {value!r}")
    try:
        number = operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise TypeError(f"{owner}.{field}: an integer is needed, got {value!r}") from None
    if not low <= number <= high:
        raise ValueError(f"{owner}.{field}: {_shown(number)} is outside {low}..{high}")
    return number


def _shown(number: float) -> str:
    """A number in a message; Python refuses to write integers of thousands of digits."""
    if isinstance(number, int) and number.bit_length() > 512:
        return f"an integer of {number.bit_length()} bits"
    return repr(number)


def seconds(owner: str, field: str, value: object) -> float:
    """Seconds within ``0..MAX_SECONDS`` as a plain float.

    Raises:
        TypeError, ValueError: naming ``owner.field``.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{owner}.{field}: seconds are needed, got {value!r}")
    if not 0 <= value <= MAX_SECONDS:
        raise ValueError(f"{owner}.{field}: {_shown(value)} is outside 0..1e9 seconds")
    return float(value)


def known_fields(
    where: str, given: object, known: Collection[str], needed: Iterable[str]
) -> dict[str, Any]:
    """The fields of an object of a file.

    Raises:
        TypeError, ValueError: no object; one without a field that is needed, or with another.
    """
    if not isinstance(given, dict):
        raise TypeError(f"{where}: an object is needed, got {given!r}")
    missing = [field for field in needed if field not in given]
    if missing:
        raise ValueError(f"{where}: {missing[0]} is missing")
    for key in given:
        if key not in known:
            raise ValueError(
                f"{where}: {key!r} is unknown; there are {', '.join(known)}"
                f"{did_you_mean(key, known)}"
            )
    return dict(given)
