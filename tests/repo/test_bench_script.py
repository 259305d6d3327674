"""The script of ``make bench``: what it leaves on its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import run_all
from bench.measure import Figure

TABLE = f"{run_all.BEGIN}\n| ratio |\n| --- |\n| old |\n{run_all.END}"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "page.md"
    path.write_text(f"before\n{TABLE}\nafter\n", "utf-8")
    monkeypatch.setattr(run_all, "PAGE", path)
    monkeypatch.setattr(run_all, "profiles", lambda: iter(()))
    return path


def test_table_is_replaced_and_the_rest_stays(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Figure("new", (1.0, 2.0, 4.0), ">= 1", "floor"), Figure("other", (3.0,), "", "")]
    monkeypatch.setattr(run_all, "figures", lambda: iter(rows))
    run_all.main()
    text = page.read_text("utf-8")
    assert text.startswith(f"before\n{run_all.BEGIN}\nOn ")
    assert "\n| new | 2 | 1 | 4 | >= 1 | floor |\n| other | 3 | 3 | 3 |  |  |\n" in text
    assert text.endswith(f"{run_all.END}\nafter\n")
    assert "old" not in text
    assert list(page.parent.iterdir()) == [page]


def test_page_stays_as_it_was_if_measuring_fails(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing() -> Iterator[Figure]:
        yield Figure("new", (1.0,), "", "")
        raise RuntimeError("no more")

    before = page.read_text("utf-8")
    monkeypatch.setattr(run_all, "figures", failing)
    with pytest.raises(RuntimeError, match="no more"):
        run_all.main()
    assert page.read_text("utf-8") == before
