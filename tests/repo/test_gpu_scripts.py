"""What ``make gpu`` records, with the emulated driver in the place of the GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import ROOT
from tbsched.traces.annotations import met_groups
from tbsched.traces.files import load_traces

pytest.importorskip("tbsched._launcher", reason="built without nvcc")


def test_groups_that_meet_are_recorded_in_all_orders(fake: Path, tmp_path: Path) -> None:
    script = ROOT / "tests" / "gpu" / "together" / "record.py"
    done = subprocess.run(
        [sys.executable, script, "--out", tmp_path, "--count", "12"],
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
    assert done.returncode == 1, done.stderr  # the fake GPU is no H200
    found = json.loads((tmp_path / "meetings.json").read_text("utf-8"))
    traces = load_traces(tmp_path / "meetings.jsonl.xz")
    ran = found["counts"]["runs"] + found["counts"].get("races", 0)
    assert ran == len(traces) > 10
    assert ran + found["counts"]["refused"] == found["asked"]
    assert list(found["again"].values()) == [[False] * 3] * len(found["again"])
    assert all(met_groups(trace.extra) for trace in traces)
