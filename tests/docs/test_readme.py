"""The examples in the README run, in order, in one session; those marked for a GPU are left out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from helpers import ROOT

BLOCK = re.compile(r"(?ms)^(<!-- gpu -->\n)?```python\n(.*?)^```$")
GIVES = re.compile(r"(?m)^(\S+) {2,}# (array\(.*\)|\d+|True|False)$")


def blocks() -> list[str]:
    text = (ROOT / "README.md").read_text("utf-8")
    return [code for gpu, code in BLOCK.findall(text) if not gpu]


def test_readme_has_examples() -> None:
    assert blocks()


def test_examples_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for number, code in enumerate(blocks(), 1):
        exec(compile(code, f"README.md, example {number}", "exec"), names)


def test_what_an_example_says_that_a_line_gives_it_gives() -> None:
    """``expression  # value``: the value is the repr of the expression."""
    names: dict[str, Any] = {}
    checked = 0
    for code in blocks():
        exec(compile(code, "README.md", "exec"), names)
        for expression, value in GIVES.findall(code):
            assert repr(eval(expression, names)) == value
            checked += 1
    assert checked
