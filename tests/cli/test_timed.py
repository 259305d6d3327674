"""The command line on sequences whose launches have durations."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import tbsched as tb
from tbsched.cli.app import app

# On the H200 the second launch starts 450 + 1450 ns after the end of the first.
PROGRAM = tb.Sequence([tb.Launch(132, 1024, 32, stream=0, duration=1e-3)] * 2)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.json"
    path.write_text(PROGRAM.to_json(), "utf-8")
    return path


def test_predict_prints_the_timeline_and_the_waits(program: Path) -> None:
    result = CliRunner().invoke(app, ["predict", str(program)])
    assert result.exit_code == 0
    assert "makespan 2.002 ms" in result.stdout
    assert (
        "Launch 1 waited 1.002 ms: 1.002 ms for launch 0, before it in its stream" in result.stdout
    )


def test_predict_takes_the_interval_of_the_host(program: Path) -> None:
    result = CliRunner().invoke(app, ["predict", str(program), "--launch-interval", "5e-4"])
    assert "Launch 1 waited 501.9 us" in result.stdout


def test_timed_prediction_that_was_written_can_be_drawn(program: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    traces, image = tmp_path / "t.jsonl", tmp_path / "t.png"
    assert CliRunner().invoke(app, ["predict", str(program), "-o", str(traces)]).exit_code == 0
    assert CliRunner().invoke(app, ["show", str(traces), "-o", str(image)]).exit_code == 0
    assert image.stat().st_size > 0


def test_devices_lists_the_orders_of_launches() -> None:
    text = CliRunner().invoke(app, ["devices"]).stdout
    assert all(name in text for name in ("leftover", "fifo", "pass_by"))
