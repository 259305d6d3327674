"""The example programs in C++, built from copies, as a stranger's projects would be."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cpp_library import build, configure, installed_library, made_once
from helpers import ROOT


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tbsched is installed."""
    return installed_library(tmp_path_factory)


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory, library: Path) -> Callable[[str], Path]:
    """The folder with the programs of an example."""

    def make(folder: Path) -> None:
        source = folder / "source"
        shutil.copytree(ROOT / "examples" / folder.name, source)
        configure(source, folder, f"-DCMAKE_PREFIX_PATH={library}")
        build(folder)

    return lambda name: made_once(tmp_path_factory, name, make)
