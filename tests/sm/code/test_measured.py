"""The figures that are shipped, and what they are compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

import tbsched as tb
from tbsched.sm.code.vendor import SAME

RECORDINGS = Path(__file__).parents[1] / "characterization" / "recordings"
GPUS = sorted(path.name.split(".")[0] for path in RECORDINGS.glob("*.xz"))


@pytest.mark.parametrize("gpu", GPUS)
def test_throughput_is_as_documented_or_the_difference_is_explained(gpu: str) -> None:
    rows = tb.sm.versus_vendor(gpu)
    assert len(rows) > 25
    for row in rows:
        assert abs(row.difference) <= SAME or row.why, row
        assert row.spread < 0.01, row


@pytest.mark.parametrize("gpu", GPUS)
def test_the_two_ways_to_measure_a_dependence_wait_agree(gpu: str) -> None:
    found = [each for each in tb.sm.measured(gpu).figures if each.least_stall is not None]
    assert len(found) > 15
    for each in found:
        assert each.dependence_wait is not None
        assert int(each.dependence_wait.value) == each.least_stall, each.opcode


@pytest.mark.parametrize("gpu", GPUS)
def test_what_is_shipped_follows_from_the_recording(gpu: str) -> None:
    """The recording has some of the opcodes and of the numbers of warps."""
    shipped = tb.sm.measured(gpu)
    for each in tb.sm.load_characterization(RECORDINGS / f"{gpu}.jsonl.xz").figures:
        other = shipped[each.opcode]
        assert each.throughput is not None
        assert other.throughput is not None
        assert each.throughput.value == pytest.approx(other.throughput.value, rel=1e-3)
        assert each.dependence_wait == other.dependence_wait
        assert (each.failed, each.least_stall) == (0, other.least_stall)


def test_a_gpu_has_the_figures_of_its_compute_capability() -> None:
    assert tb.sm.measured("h200").device["name"] == "NVIDIA H200"
    with pytest.raises(ValueError, match="no GPU like v100 was measured, only h100, h200"):
        tb.sm.measured("v100")


def test_figures_of_your_own_can_be_compared() -> None:
    assert tb.sm.versus_vendor(tb.sm.measured("h200")) == tb.sm.versus_vendor("h200")
