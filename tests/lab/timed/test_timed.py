"""The hardware script for timed programs, with the model in the place of the GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from helpers import ROOT

SCRIPT = ROOT / "tests" / "lab" / "timed" / "timed.py"


def run(*arguments: str | Path) -> str:
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    ).stdout


def test_what_the_model_recorded_the_model_predicts(tmp_path: Path) -> None:
    few = ("--programs", "4", "--sets", "2", "--connections", "16")
    recorded = run("--out", tmp_path, "--rehearse", *few)
    assert (tmp_path / "timed.txt").read_text("utf-8") == recorded
    assert re.search(r"^all +4 +100\.00 +100\.00 +0\.00 +0\.00", recorded, re.MULTILINE)
    assert "mean rank correlation 1.000" in recorded
    assert re.search(r"model, .*5\.2: b s16 s32", recorded)

    replayed = run("--replay", tmp_path / "timed.jsonl.xz", "--variants")
    assert set(recorded.splitlines()) <= set(replayed.splitlines())
    assert re.search(r"^1 queue +4 +(?!100\.00)\d", replayed, re.MULTILINE)
