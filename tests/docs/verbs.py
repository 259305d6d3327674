"""The options of a verb of the command line, as the documentation lists them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

WORDS = {int: "integer", float: "number", str: "text", bool: "", "Path": "path"}


def options_of(verb: Callable[..., object]) -> str:
    """A row per argument and option, in their order."""
    hints = get_type_hints(verb, include_extras=True)
    rows = ["| argument or option | value | default | meaning |\n", "| --- | --- | --- | --- |\n"]
    for name, parameter in inspect.signature(verb).parameters.items():
        kind, info = get_args(hints[name])
        words = ", ".join(f"`{word}`" for word in _names(name, info))
        given = parameter.default
        default = "required" if given is parameter.empty else _default(given)
        meaning = re.sub(r"(?<![\w`])--[a-z-]+", r"`\g<0>`", info.help or "")
        rows.append(f"| {words} | {_value(kind)} | {default} | {meaning} |\n")
    return "".join(rows)


def _names(name: str, info: ArgumentInfo | OptionInfo) -> list[str]:
    if isinstance(info, ArgumentInfo):
        return [info.metavar or name]
    # typer takes the first name for a default, as it once was.
    given = [info.default, *(info.param_decls or ())]
    return given if isinstance(info.default, str) else [f"--{name.replace('_', '-')}"]


def _value(kind: Any) -> str:
    if isinstance(kind, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is tuple:
        return " ".join(map(_value, get_args(kind)))
    if get_origin(kind) is list:
        return f"{_value(get_args(kind)[0])}, several"
    if issubclass(kind, StrEnum):
        return ", ".join(f"`{choice.value}`" for choice in kind)
    return WORDS[kind if kind in WORDS else kind.__name__]


def _default(value: object) -> str:
    return "" if value is None or value is False else f"`{value}`"
