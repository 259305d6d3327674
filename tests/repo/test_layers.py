"""Who may know whom, and how large folders and files may grow."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import tbsched
from helpers import ROOT

CPP = ROOT / "cpp"
PACKAGE = ROOT / "python" / "tbsched"
SOURCES = (ROOT / "python", CPP, ROOT / "kernels", ROOT / "tests")
ENDINGS = {".py", ".pyi", ".cc", ".h", ".cu", ".cuh"}

MAY_INCLUDE = {
    # What a program includes that wants all of it.
    "tbsched/tbsched.h": {"tbsched"},
    "tbsched/program": {"tbsched/program"},
    "tbsched/hardware": {"tbsched/hardware", "tbsched/program"},
    "tbsched/sm_sim": {"tbsched/sm_sim", "tbsched/hardware"},
    "tbsched/policy": {"tbsched/policy", "tbsched/hardware", "tbsched/program"},
    "tbsched/sim": {"tbsched/sim", "tbsched/policy", "tbsched/hardware", "tbsched/program"},
    "tbsched/engine": {
        "tbsched/engine",
        "tbsched/sim",
        "tbsched/policy",
        "tbsched/hardware",
        "tbsched/program",
    },
    "tbsched/coresidency": {
        "tbsched/coresidency",
        "tbsched/engine",
        "tbsched/sim",
        "tbsched/policy",
        "tbsched/hardware",
        "tbsched/program",
    },
    "launcher": {"launcher", "tbsched/program"},
    "bindings": {"bindings", "launcher", "tbsched"},
}
CPP_FILES = sorted([*CPP.rglob("*.h"), *CPP.rglob("*.cc")])

# Each room and the ones below it that it may import; a room also imports from itself.
_OBSERVED = {
    "traces", "hardware", "program", "counting", "errors", "parsing", "progress", "shown",
    "storage", "unpacking",
}  # fmt: skip
_ADVISED = {*_OBSERVED, "comparison", "launcher", "prediction"}
MAY_IMPORT = {
    "attached": set(),
    "counting": set(),
    "errors": set(),
    "parsing": set(),
    "progress": set(),
    "storage": {"errors"},
    "growing": {"parsing", "storage"},
    "unpacking": {"storage"},
    "shown": set(),
    "program": {"counting", "errors", "parsing", "shown"},
    "hardware": {"attached", "errors", "parsing", "program", "shown", "storage", "_core"},
    "traces": {*_OBSERVED, "growing"},
    "prediction": {*_OBSERVED, "_core"},
    "launcher": {*_OBSERVED, "_launcher"},
    "comparison": {*_OBSERVED, "prediction"},
    "advice": {*_ADVISED, "sm"},
    "campaigns": _ADVISED,
    "calibration": {*_ADVISED, "campaigns"},
    "strategies": {*_ADVISED, "campaigns"},
    "importers": {*_OBSERVED, "launcher", "prediction"},
    "hangs": {*_ADVISED, "advice", "importers"},
    "papers": {"program"},
    "sm": {*_OBSERVED, "growing", "launcher", "prediction", "_core"},
    "views": {*_ADVISED, "advice", "calibration", "campaigns", "hangs", "sm"},
    "show": {"views"},
    "cli": {
        *_ADVISED,
        "advice",
        "calibration",
        "campaigns",
        "hangs",
        "importers",
        "show",
        "sm",
        "views",
    },
    "pytest_plugin": {*_ADVISED, "advice", "campaigns", "hangs"},
    "__main__": {"cli"},
    "_core": {"program"},  # its stub
    "_launcher": {"errors", "program"},  # its stub
}
# Where a module, or any module of a room, imports within a function, and for the sake of which
# library: one that may be missing, or that takes long to load.
LATE = {
    ("tbsched.__main__", "typer"),
    ("tbsched.campaigns", "hypothesis"),
    ("tbsched.campaigns", "rich"),
    ("tbsched.cli.campaigns", "hypothesis"),
    ("tbsched.progress", "rich"),
    ("tbsched.prediction.together.proving", "ortools"),
    ("tbsched.launcher.kernels.cubins", "tbsched._launcher"),
    ("tbsched.launcher.query", "tbsched._launcher"),
    ("tbsched.pytest_plugin", "numpy"),
    ("tbsched.sm.characterization.gpu", "cuda"),
    ("tbsched.sm.code.reading", "cupy"),
    ("tbsched.sm.rewriting.launching", "cupy"),
    ("tbsched.views.files.perfetto", "perfetto"),
    ("tbsched.views.files.tables", "pandas"),
    ("tbsched.views.files.tables", "pyarrow"),
}
EXTRAS = {
    "cuda",
    "cupy",
    "hypothesis",
    "matplotlib",
    "ortools",
    "pandas",
    "perfetto",
    "pyarrow",
    "tbsched._launcher",
}
# The ones that import by a name that they look up.
BY_NAME = {"tbsched", "tbsched.attached", "tbsched.cli.app", "tbsched.show", "tbsched.shown"}


def room_of_file(path: Path) -> str:
    parts = path.relative_to(CPP).parts
    return "/".join(parts[: 2 if parts[0] == "tbsched" else 1])


@pytest.mark.parametrize("room", sorted(set(map(room_of_file, CPP_FILES))))
def test_core_includes_only_downwards(room: str) -> None:
    for path in (each for each in CPP_FILES if room_of_file(each) == room):
        text = path.read_text("utf-8")
        for name in re.findall(r'^\s*#include "([^"]+)"', text, re.MULTILINE):
            assert any(name.startswith(f"{other}/") for other in MAY_INCLUDE[room]), (path, name)
        for header in re.findall(r"^\s*#include <([^>]+)>", text, re.MULTILINE):
            if re.match(r"pybind11|Python\.h", header):
                assert room == "bindings", path
            if re.match(r"cuda|nv|dlfcn", header):
                assert room == "launcher", path


@dataclass(frozen=True)
class Import:
    """What a module imports.

    Attributes:
        name: of a module.
        late: only when a function is called.
        typed: only by type checkers.
    """

    name: str
    late: bool
    typed: bool


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {
    module_name(path): path for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")])
}


@functools.cache
def imports_of(module: str) -> set[Import]:
    """Every import, in functions and under TYPE_CHECKING too."""
    if module not in FILES:
        return set()
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    found = set()
    ahead: list[tuple[ast.AST, bool, bool]]
    ahead = [(ast.parse(FILES[module].read_text("utf-8")), False, False)]
    while ahead:
        node, late, typed = ahead.pop()
        late = late or isinstance(node, functions)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
            typed = typed or node.test.id == "TYPE_CHECKING"
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in FILES else str(node.module) for name in inner]
        found |= {Import(name, late, typed) for name in names}
        # No expression imports anything.
        parts = (each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr))
        ahead += [(each, late, typed) for each in parts]
    return found


PARTS = sorted(FILES.keys() - {"tbsched"})  # the package itself names all that is public


def room_of(module: str) -> str:
    room = module.split(".")[1]
    assert room in MAY_IMPORT, f"{room}: a new room needs a row in MAY_IMPORT"
    return room


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_modules_import_only_downwards(room: str) -> None:
    for module in PARTS:
        for found in imports_of(module) if room_of(module) == room else ():
            if found.name.startswith("tbsched"):
                assert found.name in FILES, f"{module}: {found.name} is no module"
                assert found.name != "tbsched", f"{module}: a module of its own is meant"
                assert room_of(found.name) in {room, *MAY_IMPORT[room]}, f"{module}: {found.name}"


def test_rooms_form_no_circle() -> None:
    graphlib.TopologicalSorter(
        {room: others - {room} for room, others in MAY_IMPORT.items()}
    ).prepare()


def test_modules_form_no_circle() -> None:
    graph = {
        module: {found.name for found in imports_of(module) if found.name in FILES}
        for module in FILES
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def loaded_with(module: str) -> set[str]:
    """The modules of the package, and the libraries, that are loaded when a module is."""
    found: set[str] = set()
    ahead = [module]
    while ahead:
        name = ahead.pop()
        name = name if name in FILES else name.split(".")[0]
        if name not in found:
            found.add(name)
            loads = [x for x in imports_of(name) if not x.late and not x.typed]
            ahead += [each.name for each in loads]
    return found


def put_off(module: str, library: str) -> set[str]:
    """What a module imports late for the sake of a library."""
    late = {found.name for found in imports_of(module) if found.late}
    return {name for name in late if library in loaded_with(name)}


def modules_in(room: str) -> list[str]:
    return [module for module in PARTS if f"{module}.".startswith(f"{room}.")]


def test_only_what_may_be_missing_is_imported_late() -> None:
    for module in PARTS:
        allowed = [put_off(module, each) for where, each in LATE if module in modules_in(where)]
        late = {found.name for found in imports_of(module) if found.late}
        assert late == set().union(*allowed), module


@pytest.mark.parametrize(("room", "library"), sorted(LATE))
def test_late_imports_are_where_the_table_says(room: str, library: str) -> None:
    assert any(put_off(module, library) for module in modules_in(room))


@pytest.mark.parametrize("module", ["cli.app", *sorted(tbsched._NAMES_OF), "show"])
def test_nothing_public_needs_an_extra_before_it_is_used(module: str) -> None:
    assert not loaded_with(f"tbsched.{module}") & EXTRAS


def test_modules_are_looked_up_by_name_in_few_places() -> None:
    texts = {module: path.read_text("utf-8") for module, path in FILES.items()}
    found = {
        module
        for module, text in texts.items()
        if "import_module" in text or "__import__" in text
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Name) and node.id in {"import_module", "__import__"})
        or (isinstance(node, ast.Attribute) and node.attr == "import_module")
    }
    assert found == BY_NAME


def test_nothing_of_the_top_is_named_as_a_public_function() -> None:
    top = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix in ENDINGS}
    assert not top & set(tbsched.__all__)


def files_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.suffix in ENDINGS]


ALL = [path for folder in SOURCES for path in files_of(folder)]
