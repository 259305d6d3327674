"""The scripts of the lab, with the emulated driver in the place of the GPU."""

from __future__ import annotations

import json
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers import ROOT
from tbsched.traces.files import load_traces

pytest.importorskip("tbsched._launcher", reason="built without nvcc")


def rehearse(fake: Path, script: str, out: Path, *arguments: str) -> None:
    done = started(fake, script, out, "--rehearse", *arguments)
    assert done.returncode == 0, done.stderr


def started(
    fake: Path, script: str, out: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "tests" / "lab" / script, "--out", out, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TBSCHED_LIBCUDA": str(fake),
            "TBSCHED_LIBNVML": str(fake),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=200,
    )


def test_every_row_is_measured(fake: Path, tmp_path: Path) -> None:
    rehearse(fake, "campaigns/campaign_speed.py", tmp_path, "--seconds", "0.3")
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
    rehearse(fake, "campaigns/campaign_scale.py", tmp_path, "--count", "16")
    rows = json.loads((tmp_path / "campaign_scale.json").read_text("utf-8"))
    assert [row["who"] for row in rows].count("2 GPUs") == 3
    assert rows[6]["who"] == "2 GPUs, a worker killed"
    assert "GPU 1" in (tmp_path / "campaign_scale.txt").read_text("utf-8")


def test_all_that_is_ended_is_counted(fake: Path, tmp_path: Path) -> None:
    few = ("--interrupts", "8", "--kills", "1", "--campaign-seconds", "0.2", "--worst", "60")
    rehearse(fake, "campaigns/interrupts.py", tmp_path, *few)
    found = json.loads((tmp_path / "interrupts.json").read_text("utf-8"))
    assert found["interrupts"]["count"] == 8
    assert found["kills"]["count"] == 1
    assert [len(found[key]) for key in ("one campaign", "two campaigns at once")] == [1, 2]


def test_the_room_beside_others_is_recorded(fake: Path, tmp_path: Path) -> None:
    done = started(fake, "together/capacities.py", tmp_path, "--count", "20")
    assert done.returncode == 1, done.stderr
    found = json.loads((tmp_path / "capacities.json").read_text("utf-8"))
    traces = load_traces(tmp_path / "capacities.jsonl.xz")
    assert found["runs"] == len(traces) > 10
    assert found["runs"] + len(found["refused"]) == 20


@pytest.mark.parametrize("which", [["--count", "40"], ["--every", "--seconds", "3"]])
def test_cooperative_launches_are_asked_about(fake: Path, tmp_path: Path, which: list[str]) -> None:
    done = started(fake, "together/cooperative.py", tmp_path, *which)
    assert done.returncode == 1, done.stderr
    found = json.loads((tmp_path / "cooperative.json").read_text("utf-8"))
    rows = rows_of(tmp_path / "cooperative.jsonl.xz")
    assert sum(found["counts"].values()) == len(rows) > 0
    assert all(row["allowed"] % row["cluster"] == 0 for row in rows)
    assert [row for row in rows if row in found["wrong"]] == found["wrong"]


def test_witnesses_and_fixes_are_run(fake: Path, tmp_path: Path) -> None:
    started(fake, "together/fixes.py", tmp_path, "--count", "4", "--processes", "2")
    found = json.loads((tmp_path / "fixes.json").read_text("utf-8"))
    verdicts = [found["answers"].get(name, 0) for name in ("safe", "not safe", "not known")]
    assert sum(verdicts) == 4
    # The fake GPU is no H200: it has other states, and no room for some groups that are safe.
    assert sum(found["runs"].values()) + len(found["others"]) > 4


def test_witnesses_of_larger_groups_are_run(fake: Path, tmp_path: Path) -> None:
    larger = ("--larger", "--outsiders", "1", "--no-fixes")
    started(fake, "together/fixes.py", tmp_path, "--count", "4", "--processes", "2", *larger)
    found = json.loads((tmp_path / "fixes.json").read_text("utf-8"))
    assert found["answers"]["not safe"] == 4
    assert found["runs"].get("witness", 0) + len(found["others"]) == 4


# The fake GPU is as slow as a busy machine: what hangs and what ends there says nothing.
def test_programs_over_several_gpus_are_prepared_and_run(fake: Path, tmp_path: Path) -> None:
    script, file = "several/programs.py", str(tmp_path / "programs.json.xz")
    few = ("--device", "emulated", "--count", "8", "--processes", "1")
    done = started(fake, script, tmp_path, "prepare", file, *few)
    assert done.returncode == 0, done.stderr
    done = started(fake, script, tmp_path, "run", file, FAKE_GPUS="2")
    found = json.loads((tmp_path / "several_programs.json").read_text("utf-8"))
    assert found["counts"]["programs"] == found["drawn"] == 8, done.stderr
    rows = rows_of(tmp_path / "several_programs.jsonl.xz")
    assert [len(row["runs"]) for row in rows] == [2] * 8
    assert sum("begun" in run for row in rows for run in row["runs"]) > 8


def test_late_hosts_of_several_gpus_are_prepared_and_run(fake: Path, tmp_path: Path) -> None:
    script, file = "several/near.py", str(tmp_path / "near.json.xz")
    few = ("--device", "emulated", "--count", "6", "--processes", "1")
    done = started(fake, script, tmp_path, "prepare", file, *few)
    assert done.returncode == 0, done.stderr
    done = started(fake, script, tmp_path, "run", file, "--skews", "2", FAKE_GPUS="2")
    found = json.loads((tmp_path / "several_near.json").read_text("utf-8"))
    assert sum(found["answers"][name] for name in ("safe", "not safe")) == 6, done.stderr
    rows = rows_of(tmp_path / "several_near.jsonl.xz")
    assert sum(found["counts"].values()) == sum(len(row["runs"]) for row in rows) >= 12


def test_public_hangs_of_several_gpus_are_run(fake: Path, tmp_path: Path) -> None:
    done = started(fake, "several/public.py", tmp_path, "--runs", "1", FAKE_GPUS="2")
    rows = json.loads((tmp_path / "several_public.json").read_text("utf-8"))
    assert len({row["case"] for row in rows}) == 4, done.stderr
    assert all("hung" in row for row in rows)


def rows_of(path: Path) -> list[dict[str, Any]]:
    with lzma.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def test_cells_of_notebooks_run_without_jupyter(fake: Path, tmp_path: Path) -> None:
    done = started(fake, "notebooks/cells.py", tmp_path, "--only", "01")
    assert done.returncode == 0, done.stdout
    found = json.loads((tmp_path / "notebooks.json").read_text("utf-8"))
    (row,) = found["notebooks"]
    assert (found["gpu"], row["ran"], row["error"]) == ("Fake GPU", 10, "")
    assert "of 129 launches" in row["printed"][6]  # which ran now
