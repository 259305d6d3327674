"""The programs in C++ that count what the predictor does, built once for all tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cpp_library import build, configure, installed_library, made_once
from tbsched.hardware.export import cpp_header
from tbsched.hardware.spec import device

FOLDER = Path(__file__).parent / "instructions"


def output(*command: str | Path) -> str:
    """What a command that must succeed says."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where they are."""
    library = installed_library(tmp_path_factory)

    def make(folder: Path) -> None:
        (folder / "h200.h").write_text(cpp_header(device("h200")), "utf-8")
        options = [f"-DCMAKE_PREFIX_PATH={library}", f"-DH200_HEADER_FOLDER={folder}"]
        configure(FOLDER, folder, *options)
        build(folder)

    return made_once(tmp_path_factory, "programs", make)
