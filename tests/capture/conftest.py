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

from gpu.script import cuda_include, shared_library
from helpers import ROOT
from once import made_once
from tbsched.launcher import injection

FAKE_CUPTI = ROOT / "tests" / "capture" / "fake_cupti" / "cupti.cc"
PRELUDE = "from capture.playing import *\ngpu = injected()"
Played: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def cupti(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake CUPTI, compiled."""
    try:
        injection.library()
    except ImportError as error:
        pytest.skip(str(error))
    include = cuda_include()
    assert include is not None
    extras = include.parent / "extras" / "CUPTI" / "include"

    def make(folder: Path) -> None:
        shared_library(folder / "libfake_cupti.so", [FAKE_CUPTI], "-O1", f"-I{extras}")

    return made_once(tmp_path_factory, "fake_cupti", make) / "libfake_cupti.so"


@pytest.fixture
def run(cupti: Path, tmp_path: Path) -> Played:
    """Runs ``tbsched capture -o run.jsonl`` of a program, which finds ``gpu``; or the program alone.

    Works in a folder of its own.
    """
    environment = {
        **os.environ,
        "TBSCHED_CUPTI": str(cupti),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }

    def run(
        code: str, *, prelude: str = PRELUDE, output: str = "run.jsonl", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        text = f"{prelude}\n{textwrap.dedent(code)}"
        command = [sys.executable, "-m", "tbsched", "capture", "-o", output, "--"]
        return subprocess.run(
            [*(command if output else ()), sys.executable, "-c", text],
            cwd=tmp_path,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run
