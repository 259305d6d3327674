"""The hardware script that ends runs, with the emulated driver in the place of the GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import ROOT

pytest.importorskip("tbsched._launcher", reason="built without nvcc")

SCRIPT = ROOT / "tests" / "gpu" / "interrupts.py"


def test_all_that_is_ended_is_counted(tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    few = ("--interrupts", "8", "--kills", "1", "--campaign-seconds", "0.2")
    done = subprocess.run(
        [sys.executable, SCRIPT, "--out", tmp_path, "--rehearse", *few],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode in (0, 1), done.stderr  # 1: slow, on a busy machine
    found = json.loads((tmp_path / "interrupts.json").read_text("utf-8"))
    assert found["interrupts"]["count"] == 8
    assert found["kills"]["count"] == 1
    assert not found["interrupts"]["failures"] + found["kills"]["failures"]
    assert [len(found[key]) for key in ("one campaign", "two campaigns at once")] == [1, 2]
    assert not any(row["counterexamples"] for row in found["two campaigns at once"])
