"""A real GPU runs proved loops, and its two ways to tell a latency agree."""

from __future__ import annotations

from pathlib import Path

import pytest

import tbsched as tb
from tbsched.launcher.observe import Gpu
from tbsched.sm.characterization.toolkit import ToolMissing, tool

pytestmark = pytest.mark.tbsched_gpu
NAMES = ("fp32.fma", "int32.mad", "special.ex2")


def test_figures_are_whole_and_agree(hopper: Gpu, tmp_path: Path) -> None:
    pytest.importorskip("cuda.core")
    try:
        for name in ("ptxas", "nvdisasm"):
            tool(name)
    except ToolMissing as error:
        pytest.skip(str(error))
    found = tb.sm.characterize(
        opcodes=NAMES, raw=tmp_path / "runs.jsonl", warps=(1, 4, 8, 16, 31, 33, 64), progress=False
    )
    for each in found.figures:
        assert (each.reason, each.failed) == ("", 0), str(found)
        assert each.throughput is not None
        assert each.dependence_wait is not None
        assert each.throughput.spread < 0.01
        if each.least_stall is not None:
            assert int(each.dependence_wait.value) == each.least_stall
    assert found["fp32.fma"].least_stall is not None
    assert tb.sm.load_characterization(tmp_path / "runs.jsonl").figures == found.figures
