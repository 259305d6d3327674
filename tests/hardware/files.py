"""Device files that the tests of this folder write."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from tbsched.hardware.catalogue import device, devices

SHIPPED = devices()
DEVICES = resources.files("tbsched.hardware") / "devices"
RTX3090 = (DEVICES / "rtx3090.toml").read_text("utf-8")

Write = Callable[..., Path]


def row(value: str) -> str:
    return f'{{ value = {value}, provenance = "measured", source = "a test" }}'


def variant(path: str, value: str, base: str = "rtx3090") -> str:
    section, key = path.split(".")
    return f'extends = "{base}"\n[{section}]\n{key} = {row(value)}\n'


def refusal(path: Path) -> str:
    """The message with which a file is refused; it always names the file."""
    with pytest.raises(ValueError, match=re.escape(path.name)) as caught:
        device(path)
    return str(caught.value)
