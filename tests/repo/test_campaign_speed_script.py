"""The hardware script that measures campaigns, with the emulated driver in the place of the GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import ROOT

pytest.importorskip("tbsched._launcher", reason="built without nvcc")

SCRIPT = ROOT / "tests" / "gpu" / "campaign_speed.py"


def test_every_row_is_measured(tmp_path: Path, fake: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--out", tmp_path, "--rehearse", "--seconds", "0.3"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TBSCHED_LIBCUDA": str(fake),
            "TBSCHED_LIBNVML": str(fake),
        },
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "campaign_speed.txt").read_text("utf-8")
    for row in (
        "floor: leave at once",
        "floor: held",
        "launcher alone",
        "native campaign, occupancy",
        "native campaign, exact",
        "hypothesis campaign, occupancy",
        "hypothesis campaign, exact",
        r"blocks that sleep 0\.02 s",
    ):
        assert re.search(rf"^{row}.* +[\d,]+ +[\d,]+ +[\d,.]+ +[\d,]+ +[\d.]+$", text, re.MULTILINE)
    assert re.search(r"^campaign, exact +[\d,]+$", text, re.MULTILINE)
