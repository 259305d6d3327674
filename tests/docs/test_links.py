"""Every page of the site is in a table of contents, and every relative link leads to a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINKING = [*PAGES, *ROOT.glob("*.md"), *ROOT.glob("examples/**/*.md")]
TOCTREE = re.compile(r"(?ms)^(```|:::)\{toctree\}\n(.*?)^\1$")
CODE = re.compile(r"(?ms)^(`{3,}).*?^\1$|`[^`\n]*`")
LINK = re.compile(r"\]\(<?([^)#\s>]+)[^)]*\)")


def contents(page: Path) -> set[Path]:
    """The pages that the tables of contents of a page name."""
    found: set[Path] = set()
    for _, text in TOCTREE.findall(page.read_text("utf-8")):
        for line in text.splitlines():
            entry = re.sub(r".*<(.*)>", r"\1", line.strip())
            if entry and not entry.startswith(":"):
                found.update(page.parent.glob(f"{entry}.md"))
    return found - {page}


def dead_links(page: Path, text: str) -> list[str]:
    links = LINK.findall(CODE.sub("", text))
    return [link for link in links if ":" not in link and not (page.parent / link).exists()]


def test_every_page_is_in_a_table_of_contents() -> None:
    reached = {DOCS / "index.md"}
    waiting = list(reached)
    while waiting:
        fresh = contents(waiting.pop()) - reached
        reached |= fresh
        waiting += fresh
    assert [page.relative_to(ROOT) for page in PAGES if page not in reached] == []


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_of_a_page_lead_to_files(page: Path) -> None:
    assert dead_links(page, page.read_text("utf-8")) == []


def test_a_dead_link_is_found() -> None:
    text = "[a](index.md) [b](gone.md#part)\n```\n[c](code.md)\n```\n"
    assert dead_links(DOCS / "index.md", text) == ["gone.md"]
