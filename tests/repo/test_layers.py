"""Who may know whom: the import graph of the package and the include graph of the core."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from helpers import ROOT

PACKAGE = ROOT / "python" / "tbsched"
CPP = ROOT / "cpp"

BASE = {"duration", "errors", "sequence", "spec", "trace"}
# What each module, or subpackage, may import of tbsched. "report" is imported by the traces and
# diffs that print themselves, when they do, and "timeline" by traces that are asked about time.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "checks": set(),
    "duration": {"checks"},
    "sequence": {"checks", "duration"},
    "spec": {"errors", "sequence", "spec_checks", "spec_rows"},
    "spec_checks": {"spec"},
    "spec_rows": set(),
    "trace": {"errors", "sequence", "report", "timeline"},
    "event_table": {"trace"},
    "predict": {*BASE, "checks", "_core"},
    "predict_tables": {*BASE, "event_table", "predict", "_core"},
    "observe": {*BASE, "event_table", "_launcher"},
    "compare": {*BASE, "report"},
    "report": {*BASE, "compare", "launch_configs"},
    "timeline": {*BASE, "report"},
    "timing": {*BASE, "checks", "report"},
    "steer": {*BASE, "predict"},
    "advice": {*BASE, "checks", "predict", "report"},
    "plot": {*BASE, "compare", "report"},
    "verify": {*BASE, "predict", "compare"},
    "export": BASE,
    "published_rules": set(),
    "evenness": {*BASE, "predict"},
    "launch_configs": {*BASE, "predict", "evenness", "report"},
    "cases": BASE,
    "fuzz": {
        *BASE,
        "event_table",
        "predict",
        "predict_tables",
        "observe",
        "compare",
        "steer",
        "fuzz",
    },
    "pytest_plugin": {*BASE, "observe", "fuzz"},
}
LAZILY = {
    *((name, "report") for name in ("advice", "trace", "compare", "launch_configs", "timing")),
    ("trace", "timeline"),
}
# The package itself, and the command line, see everything.
SEE_ALL = {"__init__", "__main__", "cli"}

MAY_INCLUDE = {
    "model": {"model"},
    "sm": {"sm", "model"},
    "policy": {"policy", "sm", "model"},
    "engine": {"engine", "policy", "sm", "model"},
    "cuda": {"cuda", "model"},
    "bindings": {"bindings", "engine", "policy", "sm", "model", "cuda"},
}


def part(path: Path) -> str:
    """The module, or the subpackage, that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(node: ast.AST) -> set[str]:
    """The parts of tbsched that the code below a node imports."""
    names: set[str] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Import):
            names |= {alias.name for alias in item.names}
        elif isinstance(item, ast.ImportFrom):
            assert item.level == 0, "imports are absolute"
            if item.module == "tbsched":
                names |= {f"tbsched.{alias.name}" for alias in item.names}
            elif item.module:
                names.add(item.module)
    return {name.split(".")[1] for name in names if name.startswith("tbsched.")}


PYTHON_FILES = sorted(PACKAGE.rglob("*.py"))
CPP_FILES = sorted([*CPP.rglob("*.h"), *CPP.rglob("*.cc")])


def test_every_part_has_its_place_in_the_table() -> None:
    assert {part(path) for path in PYTHON_FILES} == {*MAY_IMPORT, *SEE_ALL}
    assert {path.relative_to(CPP).parts[0] for path in CPP_FILES} == set(MAY_INCLUDE)


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_imports_only_what_it_may(path: Path) -> None:
    found = imports(ast.parse(path.read_text("utf-8")))
    if part(path) not in SEE_ALL:
        assert found <= MAY_IMPORT[part(path)]
    if path.name != "__main__.py":
        assert "cli" not in found


@pytest.mark.parametrize(("importer", "imported"), sorted(LAZILY))
def test_what_prints_itself_imports_report_only_when_it_prints(
    importer: str, imported: str
) -> None:
    tree = ast.parse((PACKAGE / f"{importer}.py").read_text("utf-8"))
    at_once = ast.Module([node for node in tree.body if not isinstance(node, ast.ClassDef)], [])
    assert imported not in imports(at_once)
    assert imported in imports(tree)


def test_prediction_and_observation_never_see_each_other() -> None:
    for one, other in (("predict", {"observe", "_launcher"}), ("observe", {"predict", "_core"})):
        assert not imports(ast.parse((PACKAGE / f"{one}.py").read_text("utf-8"))) & other


@pytest.mark.parametrize("path", CPP_FILES, ids=lambda path: str(path.relative_to(CPP)))
def test_core_includes_only_downwards(path: Path) -> None:
    folder = path.relative_to(CPP).parts[0]
    text = path.read_text("utf-8")
    quoted = {
        name.split("/")[0] for name in re.findall(r'^\s*#include "([^"]+)"', text, re.MULTILINE)
    }
    assert quoted <= MAY_INCLUDE[folder]
    angled = re.findall(r"^\s*#include <([^>]+)>", text, re.MULTILINE)
    for header in angled:
        if re.match(r"pybind11|Python\.h", header):
            assert folder == "bindings"
        if re.match(r"cuda|nv|dlfcn", header):
            assert folder == "cuda"


def test_model_holds_values_and_no_code() -> None:
    assert not list((CPP / "model").glob("*.cc"))
