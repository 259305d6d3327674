"""The versions of libraries: the least that is declared, and those that the tests run with."""

from __future__ import annotations

import re

import sanitize
from floors import floors
from helpers import ROOT

PINS = dict(
    line.split("==")
    for line in (ROOT / "tests" / "constraints.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
)
OF_NO_TEST = {"cuda-core", "pre-commit"}


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_every_library_of_the_tests_is_pinned_at_a_version_that_is_allowed() -> None:
    least = {name: floor for name, floor in floors().items() if name not in OF_NO_TEST}
    assert least.keys() <= PINS.keys()
    for name, floor in least.items():
        assert numbers(PINS[name]) >= numbers(floor), name


def test_what_users_are_told_to_install_is_a_library_of_the_package() -> None:
    sources = (path.read_text("utf-8") for path in (ROOT / "python").rglob("*.py"))
    told = {name for text in sources for name in re.findall(r'missing\(.*"([\w-]+)"\)', text)}
    assert told == {"cuda-core", "hypothesis", "matplotlib", "pandas", "perfetto", "pyarrow"}
    assert told <= floors().keys()


def test_makefile_installs_what_is_pinned() -> None:
    lines = (ROOT / "Makefile").read_text("utf-8").splitlines()
    online = [
        line for line in lines if "pip install --quiet -c" in line or "(call install," in line
    ]
    online = [line for line in online if "$(FLOORS)" not in line]
    assert len(online) >= 4
    assert all("-c tests/constraints.txt" in line for line in online)


def test_what_is_tested_with_sanitizers_is_there() -> None:
    assert [path for path in sanitize.TESTS if not (ROOT / path).exists()] == []
