"""The library as it is installed, for the tests of what strangers do with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpp_library import installed_library


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tbsched is installed."""
    return installed_library(tmp_path_factory)
