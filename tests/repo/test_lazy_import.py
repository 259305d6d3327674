"""Public names are loaded when they are first needed, and no module hides the one of its name."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tbsched


def test_public_names_are_those_that_type_checkers_see() -> None:
    source = Path(tbsched.__file__).read_text("utf-8")
    imports = [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tbsched.")
        for alias in node.names
    ]
    table = [(f"tbsched.{home}", name) for name, home in tbsched._HOME.items()]
    assert sorted(imports) == sorted(table)
    assert sorted(tbsched.__all__) == sorted(name for _, name in imports)
    assert dir(tbsched) == sorted(tbsched.__all__)


@pytest.mark.parametrize("name", sorted(tbsched.__all__))
def test_name_is_what_it_says_even_after_its_module_is_imported(name: str) -> None:
    program = (
        f"import importlib, tbsched; importlib.import_module('tbsched.{tbsched._HOME[name]}'); "
        f"import types; assert not isinstance(tbsched.{name}, types.ModuleType)"
    )
    assert not isinstance(getattr(tbsched, name), ModuleType)
    if name in tbsched._NAMES_OF:
        path = [part for part in sys.path if part]
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            env={**os.environ, "PYTHONPATH": ":".join(path)},
        )


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tbsched' has no attribute 'guess'"):
        tbsched.guess  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    program = "import sys, tbsched; print(*(m for m in sys.modules if m.startswith('tbsched.')))"
    path = [part for part in sys.path if part]
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": ":".join(path)},
    )  # fmt: skip
    assert said.stdout.strip() == ""
