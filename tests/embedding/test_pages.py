"""The C++ on the pages: it is that of a file which is built elsewhere, or it compiles here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cpp_library import CXX
from helpers import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "```cpp\n" in page.read_text("utf-8"))
# What is in scope on a page, where that is more than its own headers.
SCOPE = """
#include "rtx3090.h"
#include "tbsched/tbsched.h"

void on_the_page(const tbsched::DeviceSpec& spec, const tbsched::Model& model,
                 tbsched::HeldEngine& engine) {
  {code}
}
"""
# Its header needs toml++, and is not installed without.
NEEDS_TOML = "tbsched/hardware/device_file.h"


def cpp_of(page: Path) -> list[str]:
    return re.findall(r"(?ms)^```cpp\n(.*?)^```$", page.read_text("utf-8"))


def built_sources() -> str:
    folders = [ROOT / "examples", ROOT / "cpp" / "tbsched"]
    files = [path for folder in folders for path in folder.rglob("*.*")]
    return "\n".join(
        path.read_text("utf-8") for path in sorted(files) if path.suffix in {".cc", ".h", ".inc"}
    )


def refusal_of(code: str, *includes: Path) -> str:
    """What the compiler says against it; nothing if it compiles."""
    flags = ["-std=c++20", "-Wall", "-Werror", "-Wno-unused", "-fsyntax-only"]
    options = [f"-I{folder}" for folder in includes]
    done = subprocess.run(
        [CXX, *flags, *options, "-x", "c++", "-"], input=code, capture_output=True, text=True
    )
    return done.stderr if done.returncode else ""


def test_pages_with_cpp_are_found() -> None:
    names = {page.name for page in PAGES}
    assert {"add-a-policy.md", "embed-cpp.md", "simulators.md", "devices.md"} <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_the_page_compiles(page: Path, library: Path) -> None:
    sources = built_sources()
    for code in cpp_of(page):
        if code in sources:
            continue
        include = library / "include"
        if NEEDS_TOML in code:
            include = ROOT / "cpp"
            head, rest = code.split("\n\n", 1)
            text = f"{head}\nvoid on_the_page() {{\n{rest}}}\n"
        else:
            text = SCOPE.replace("{code}", code)
        refused = refusal_of(text, include, ROOT / "examples" / "embed")
        assert refused == "", f"{page.name}:\n{code}\n{refused}"


def test_code_that_does_not_compile_is_refused(library: Path) -> None:
    text = SCOPE.replace("{code}", "engine.stepp();")
    assert "stepp" in refusal_of(text, library / "include", ROOT / "examples" / "embed")


def test_steps_of_add_a_policy_compile_in_a_copy_of_the_tree(tmp_path: Path) -> None:
    """A policy with another name, whose file, declaration and row are those of the page."""
    if shutil.which(CXX) is None:
        pytest.skip(f"{CXX} is not installed")
    file, declaration, row = cpp_of(DOCS / "how-to" / "add-a-policy.md")
    table = ROOT / "cpp/tbsched/policy/table.cc"
    assert file == (ROOT / "cpp/tbsched/policy/baselines/first_fit.cc").read_text("utf-8")
    tree = tmp_path / "tbsched"
    shutil.copytree(ROOT / "cpp" / "tbsched", tree)
    text = table.read_text("utf-8")
    for own in (declaration, row):
        assert text.count(own) == 1
        text = text.replace(own, own + own.replace("first_fit", "mine"))
    assert text.count("mine") == 3  # declared; name and factory of the row
    mine = tree / "policy" / "baselines" / "mine.cc"
    mine.write_text(file.replace("first_fit", "mine").replace("FirstFit", "Mine"), "utf-8")
    assert refusal_of(mine.read_text("utf-8"), tmp_path) == ""
    assert refusal_of(text, tmp_path) == ""
