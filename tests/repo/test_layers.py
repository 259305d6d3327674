"""Who may know whom: the include graph of the core."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers import ROOT

CPP = ROOT / "cpp"
MAY_INCLUDE = {
    "tbsched/program": {"tbsched/program"},
    "tbsched/hardware": {"tbsched/hardware", "tbsched/program"},
    "tbsched/policy": {"tbsched/policy", "tbsched/hardware", "tbsched/program"},
    "tbsched/engine": {"tbsched/engine", "tbsched/policy", "tbsched/hardware", "tbsched/program"},
    "launcher": {"launcher", "tbsched/program", "tbsched/hardware"},
    "bindings": {"bindings", "launcher", "tbsched"},
}
CPP_FILES = sorted([*CPP.rglob("*.h"), *CPP.rglob("*.cc")])


@pytest.mark.parametrize("path", CPP_FILES, ids=lambda path: str(path.relative_to(CPP)))
def test_core_includes_only_downwards(path: Path) -> None:
    parts = path.relative_to(CPP).parts
    room = "/".join(parts[: 2 if parts[0] == "tbsched" else 1])
    text = path.read_text("utf-8")
    for name in re.findall(r'^\s*#include "([^"]+)"', text, re.MULTILINE):
        assert any(name.startswith(f"{other}/") for other in MAY_INCLUDE[room]), name
    for header in re.findall(r"^\s*#include <([^>]+)>", text, re.MULTILINE):
        if re.match(r"pybind11|Python\.h", header):
            assert room == "bindings"
        if re.match(r"cuda|nv|dlfcn", header):
            assert room == "launcher"
