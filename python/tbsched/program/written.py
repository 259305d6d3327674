"""Frozen values as source text and as plain data: their fields that are not at their default."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Container, Mapping
from typing import Any


def given_fields(value: Any, always: Container[str] = ()) -> dict[str, Any]:
    """Returns the fields whose values differ from their defaults, and those in ``always``."""
    kind: Any = type(value)
    return {
        name: getattr(value, name)
        for name, default in _defaults(kind).items()
        if name in always or getattr(value, name) != default
    }


def source(value: object) -> str:
    """Returns the Python expression that makes a value."""
    fields = ", ".join(f"{name}={field!r}" for name, field in given_fields(value).items())
    return f"{type(value).__name__}({fields})"


@functools.cache
def _defaults(kind: type) -> Mapping[str, object]:
    parameters = inspect.signature(kind).parameters
    return {name: parameter.default for name, parameter in parameters.items()}
