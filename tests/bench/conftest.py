"""The programs in C++ that count what the predictor does, built once for all tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cpp_library import built

FOLDER = Path(__file__).parent / "instructions"


def output(*command: str | Path) -> str:
    """What a command that must succeed says."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where they are."""
    return built(tmp_path_factory, FOLDER)
