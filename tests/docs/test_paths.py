"""Files that the pages name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/**/*.md")])
NAMED = re.compile(
    r"`((?:cpp|python|kernels|tests|docs|examples|notebooks|schema)/[\w./-]*[\w/])[^`]*`"
)


def is_there(name: str) -> bool:
    """A file, a folder, or a C++ file and its header named without their ending."""
    path = ROOT / name
    is_placeholder = "NAME" in name
    return is_placeholder or path.exists() or path.with_name(path.name + ".h").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text("utf-8")
    assert [name for name in NAMED.findall(text) if not is_there(name)] == []


def test_pages_name_files() -> None:
    assert any(NAMED.search(page.read_text("utf-8")) for page in PAGES)


def test_nothing_is_installed_by_a_name_that_no_index_has() -> None:
    """tbsched is not on PyPI: a page or a message names a copy, a wheel or another package."""
    told = re.compile(r"pip install [^\n`]*tbsched(?:\[|\b(?!-|/|\.git))[^\n`]*")
    sources = (ROOT / "python").rglob("*.py")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("notebooks/*.ipynb")]
    # They say that no index has it, or quote what was.
    exempt = {"install.md", "CHANGELOG.md"}
    found = {
        str(place.relative_to(ROOT)): [
            words
            for words in told.findall(place.read_text("utf-8"))
            if not any(each in words for each in ("whl", "git+"))
        ]
        for place in (*sources, *pages)
        if place.name not in exempt
    }
    assert {place: words for place, words in found.items() if words} == {}
