"""The fake CUPTI, and programs that it plays."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from compiled import cuda_include, shared_library
from helpers import ROOT
from once import made_once
from tbsched.launcher import injection

FAKE_CUPTI = ROOT / "tests" / "capture" / "fake_cupti" / "cupti.cc"
PRELUDE = "from capture.playing import *\ngpu = injected()"
Played: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def cupti(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake CUPTI, compiled; once it is loaded, it is the driver, too."""
    include = cuda_include()
    extras = Path() if include is None else include.parent / "extras" / "CUPTI" / "include"
    if include is None or not any((folder / "cupti.h").exists() for folder in (include, extras)):
        pytest.skip("no CUDA toolkit with CUPTI, so captures are not built")

    def make(folder: Path) -> None:
        flags = "-O1", f"-I{extras}", "-Wl,-soname,libcuda.so.1"
        shared_library(folder / "libfake_cupti.so", [FAKE_CUPTI], *flags)

    return made_once(tmp_path_factory, "fake_cupti", make) / "libfake_cupti.so"


@pytest.fixture
def surroundings(cupti: Path) -> dict[str, str]:
    """The environment of a program that can be captured."""
    return {
        **os.environ,
        "TBSCHED_CUPTI": str(cupti),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }


@pytest.fixture
def run(surroundings: dict[str, str], tmp_path: Path) -> Played:
    """Captures a program that finds ``gpu`` into run.jsonl of a folder of its own."""

    def run(
        code: str, *, prelude: str = PRELUDE, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-S", "-c", f"{prelude}\n{textwrap.dedent(code)}"],
            cwd=tmp_path,
            env={**injection.injected(surroundings, tmp_path / "run.jsonl"), **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run
