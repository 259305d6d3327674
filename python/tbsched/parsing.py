"""JSON and TOML that others wrote, parsed: what is wrong with it is a ``ValueError`` in words.

Everything in the package that parses text of a user's goes through here.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from typing import Any

# What parsers raise of a text that they cannot take.
REFUSED = (ValueError, ArithmeticError, RecursionError)
_TOO_MANY_DIGITS = "Exceeds the limit"  # how Python's message of integers begins


def json_value(text: str | bytes, parse_float: Callable[[str], Any] | None = None) -> Any:
    """Returns the value of a JSON document.

    Args:
        text: of the document.
        parse_float: makes a number of the text of one with a point; None: a float.

    Raises:
        ValueError: not JSON, not UTF-8, or beyond what Python's parser can take.
    """
    try:
        return json.loads(text, parse_float=parse_float)
    except REFUSED as error:
        raise ValueError(why(error)) from None


def toml_tables(text: bytes) -> dict[str, Any]:
    """Returns what a TOML document holds.

    Raises:
        ValueError: not TOML, not UTF-8, or beyond what Python's parser can take.
    """
    try:
        return tomllib.loads(text.decode("utf-8-sig"))
    except REFUSED as error:
        raise ValueError(why(error)) from None


def why(error: Exception) -> str:
    """Returns what a parser says of a text, in the words of whoever wrote the text."""
    said = str(error)
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        place = f"line {error.lineno}, column" if error.lineno > 1 else "column"
        return f"{error.msg} at {place} {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no {error.encoding.upper()}"
    if said.startswith(_TOO_MANY_DIGITS):
        return f"an integer of more than {sys.get_int_max_str_digits()} digits"
    return said or type(error).__name__
