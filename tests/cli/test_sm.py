"""``tbsched sm``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers import ROOT
from tbsched.cli.app import app
from tbsched.sm.characterization.toolkit import ToolMissing, tool
from tbsched.sm.generator import preset
from tbsched.sm.workloads import save_workload


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    """A file with few blocks."""
    save_workload(preset("SCP", blocks=8), tmp_path / "scp.npz")
    return str(tmp_path / "scp.npz")


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["sm", "simulate", *arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_schedulers_are_compared_with_the_first(kernel: str) -> None:
    lines = said(
        kernel, "--scheduler", "round_robin", "--scheduler", "perfect_l1", "--set", "banks=8"
    ).splitlines()
    assert lines[0].split()[:4] == ["workload", "config", "scheduler", "IPC"]
    first, second = (line.split() for line in lines[1:])
    assert first[1:4] == ["owl-table1,", "banks=8", "round_robin"]
    assert first[5] == "1.00"
    assert float(second[5]) > 1


def test_document_has_the_counts(kernel: str) -> None:
    (row,) = json.loads(said(kernel, "--scheduler", "owl", "--json"))["simulations"]
    assert (row["scheduler"], row["speedup"]) == ("owl", 1)
    assert row["counts"]["instructions"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["SCQ"], "SCQ.* is unknown; there are SAD"),
        (["SCP", "--set", "banks"], "--set banks: a parameter=integer is needed"),
        (["SCP", "--config", "mine"], "mine.* is unknown; there are h100-like, h200-like, owl"),
    ],
)
def test_wrong_input_is_named(arguments: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        said(*arguments)


def test_variants_do_not_replace_the_cubin_that_is_read(tmp_path: Path) -> None:
    try:
        tool("nvdisasm")
    except ToolMissing as error:
        pytest.skip(str(error))
    place = tmp_path / "original.cubin"
    shutil.copy(ROOT / "tests/advice/configs/cubins/walsh_shared_f32.cubin", place)
    before = place.stat().st_mtime_ns
    arguments = ["sm", "variants", str(place), "-t", "256", "-o", str(tmp_path)]
    result = CliRunner().invoke(app, arguments, standalone_mode=False)
    assert "original.cubin is what is read" in str(result.exception)
    assert place.stat().st_mtime_ns == before
    assert list(tmp_path.iterdir()) == [place]


def test_variants_say_what_was_written_and_whether_it_replaced_something(tmp_path: Path) -> None:
    try:
        tool("nvdisasm")
    except ToolMissing as error:
        pytest.skip(str(error))
    place = ROOT / "tests/advice/configs/cubins/walsh_shared_f32.cubin"
    out = tmp_path / "out"
    for more in ("", ", in place of what was there"):
        arguments = ["sm", "variants", str(place), "-t", "256", "-o", str(out)]
        result = CliRunner().invoke(app, arguments)
        count = len(list(out.iterdir()))
        assert f"wrote {out}: {count} files{more}\n" in result.stderr


def test_a_replay_needs_the_runs() -> None:
    arguments = ["sm", "characterize", "--replay"]
    result = CliRunner().invoke(app, arguments, standalone_mode=False)
    assert "--evidence is needed" in str(result.exception)
