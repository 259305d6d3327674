"""The hardware scripts, with the emulated driver in the place of the GPU."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import ROOT

pytest.importorskip("tbsched._launcher", reason="built without nvcc")


def rehearse(fake: Path, script: str, out: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "gpu" / script, "--out", out, "--rehearse", *arguments],
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


def test_every_row_is_measured(fake: Path, tmp_path: Path) -> None:
    rehearse(fake, "campaign_speed.py", tmp_path, "--seconds", "0.3")
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


def test_several_gpus_find_the_same(fake: Path, tmp_path: Path) -> None:
    rehearse(fake, "scale/campaign_scale.py", tmp_path, "--count", "16")
    rows = json.loads((tmp_path / "campaign_scale.json").read_text("utf-8"))
    assert [row["who"] for row in rows].count("2 GPUs") == 3
    assert rows[6]["who"] == "2 GPUs, a worker killed"
    assert "GPU 1" in (tmp_path / "campaign_scale.txt").read_text("utf-8")


def test_all_that_is_ended_is_counted(fake: Path, tmp_path: Path) -> None:
    few = ("--interrupts", "8", "--kills", "1", "--campaign-seconds", "0.2", "--worst", "60")
    rehearse(fake, "interrupts.py", tmp_path, *few)
    found = json.loads((tmp_path / "interrupts.json").read_text("utf-8"))
    assert found["interrupts"]["count"] == 8
    assert found["kills"]["count"] == 1
    assert [len(found[key]) for key in ("one campaign", "two campaigns at once")] == [1, 2]
