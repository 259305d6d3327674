"""The programs in C++ that count what the predictor does, built once for all tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tbsched.hardware.catalogue import device
from tbsched.hardware.export import cpp_header

FOLDER = Path(__file__).parent / "instructions"
CXX = os.environ.get("CXX", "c++")


def output(*command: str | Path) -> str:
    """What a command that must succeed says."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where they are."""
    for tool in (CXX, "cmake"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("programs")
    (folder / "h200.h").write_text(cpp_header(device("h200")), "utf-8")
    output("cmake", "-S", FOLDER, "-B", folder, f"-DH200_HEADER_FOLDER={folder}")
    output("cmake", "--build", folder, "--parallel", "2")
    return folder
