"""What the tests of devices share."""

from __future__ import annotations

from pathlib import Path

import pytest

from hardware.files import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes ``mine.toml`` (or another name) and gives its path."""

    def to_file(text: str, name: str = "mine.toml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return to_file
