"""Public names are loaded when they are first needed, and no module hides the one of its name."""

from __future__ import annotations

import ast
import importlib
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
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tbsched")
        for alias in node.names
        if alias.asname == alias.name  # else it is no public name to them
    ]
    names = [(f"tbsched.{home}", name) for name, home in tbsched._HOME.items()]
    modules = [("tbsched", name) for name in tbsched._MODULES]
    assert sorted(imports) == sorted([*names, *modules])
    assert tbsched.__all__ == sorted(name for _, name in names)
    assert dir(tbsched) == sorted([*tbsched.__all__, *tbsched._MODULES])


@pytest.mark.parametrize("name", sorted(tbsched.__all__))
def test_name_is_what_it_says_even_after_its_module_is_imported(name: str) -> None:
    importlib.import_module(f"tbsched.{tbsched._HOME[name]}")
    assert not isinstance(getattr(tbsched, name), ModuleType)


@pytest.mark.parametrize("name", tbsched._MODULES)
def test_public_module_is_loaded_when_it_is_asked_for(name: str) -> None:
    found = printed(f"tbsched.{name}.__name__, 'tbsched.{name}' in sys.modules")
    assert found == f"tbsched.{name} True"


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tbsched' has no attribute 'guess'"):
        tbsched.guess  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    assert printed("*(module for module in sys.modules if module.startswith('tbsched.'))") == ""


def test_sub_interpreter_is_refused_and_does_not_hang() -> None:
    code = """
import sys
try:
    import _interpreters as known
except ImportError:
    import _xxsubinterpreters as known
try:
    found = known.run_string(known.create(), "import tbsched._core")
except Exception as error:
    found = error
print(found)
"""
    path = os.pathsep.join(part for part in sys.path if part)
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert "works in the main interpreter of a process only" in done.stdout


def printed(words: str) -> str:
    """What a process that has imported nothing but the package prints."""
    path = [part for part in sys.path if part]
    return subprocess.run(
        [sys.executable, "-c", f"import sys, tbsched; print({words})"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(path)},
    ).stdout.strip()
