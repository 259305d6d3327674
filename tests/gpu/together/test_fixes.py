"""Witnesses hang on the hardware, and fixes do not."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tbsched as tb
from advice.together.puzzles import COMMUNICATION, GEMM, LARGE, SCHEDULERS, SMALL, WORKERS
from tbsched.cli.app import app
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu

KERNEL = tb.Launch(8, 128, 32, stream=1, duration=1e-3, name="kernel")
LEGACY = replace(KERNEL, stream=tb.LEGACY_STREAM, name="legacy")
ASKED = {
    "workers": (WORKERS, SCHEDULERS),
    "disjoint": (SMALL, LARGE),
    "gemm": (GEMM, COMMUNICATION),
    "legacy": (KERNEL, LEGACY),
    "stream": (replace(SCHEDULERS, stream=0), replace(SCHEDULERS, stream=0)),
    "memory": (SCHEDULERS, replace(SCHEDULERS, local_memory=64 * 1024)),
}


@pytest.mark.parametrize("name", ASKED)
def test_witness_hangs_and_fixes_do_not(
    hopper: Gpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setattr("tbsched.cli.together.on_gpu.Gpu", lambda _: nullcontext(hopper))
    place = tmp_path / "asked.json"
    place.write_text(tb.Sequence(ASKED[name]).to_json(), "utf-8")
    command = ["coresident", str(place), "--device", "h200", "--gpu", "--json"]
    result = CliRunner().invoke(app, command, standalone_mode=False)
    assert result.exception is None
    runs = json.loads(result.stdout)["sequences"][0]["gpu"]
    print("\n".join(map(str, runs)))
    assert (runs[0]["hung"], runs[0]["agrees"]) == (1, True)
    assert all(run["agrees"] is not False for run in runs)
    assert any(run["agrees"] for run in runs[1:])
