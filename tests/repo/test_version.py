"""The version is written in four places and installed in a fifth; they agree."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata

import pytest

import tbsched as tb
from helpers import ROOT


def version() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["version"])


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CMakeLists.txt", r"project\(tbsched VERSION (\S+) "),
        ("CHANGELOG.md", r"(?m)^## \[?v?([0-9][^\]\s]*)"),
        ("CITATION.cff", r"(?m)^version: (\S+)$"),
    ],
)
def test_version_is_that_of_pyproject(file: str, pattern: str) -> None:
    found = re.search(pattern, (ROOT / file).read_text("utf-8"))
    assert found is not None
    assert found[1] == version()


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("examples/embed/CMakeLists.txt", r"find_package\(tbsched (\S+) "),
        ("examples/simulator/CMakeLists.txt", r"FIND_PACKAGE_ARGS (\S+) "),
        ("docs/how-to/embed-cpp.md", r"find_package\(tbsched (\S+) "),
    ],
)
def test_examples_ask_for_this_minor_version(file: str, pattern: str) -> None:
    found = re.search(pattern, (ROOT / file).read_text("utf-8"))
    assert found is not None
    assert version().startswith(f"{found[1]}.")


def test_installed_version_is_that_of_pyproject() -> None:
    try:
        installed = tb.__version__
    except metadata.PackageNotFoundError:
        pytest.skip("tbsched is on the path, not installed")
    assert installed == version()
