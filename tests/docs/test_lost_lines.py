"""No line of a page is lost on the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))
CODE = re.compile(r"(?ms)^(`{3,}).*?^\1$")
COMMENT = re.compile(r"(?m)^[ ]*%.*$")


def lost(text: str) -> list[str]:
    """The lines that MyST takes for comments: "50\\n% of them" loses the second one."""
    return COMMENT.findall(CODE.sub("", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_a_page_begins_with_a_per_cent_sign(page: Path) -> None:
    assert lost(page.read_text("utf-8")) == []


def test_a_lost_line_is_found() -> None:
    assert lost("50\n% of them\n```\n% code\n```\n5 % more\n") == ["% of them"]
