"""Captures of what the launcher launches, by CUPTI itself."""

from __future__ import annotations

import pytest

import tbsched as tb
from tbsched.launcher.observe import Gpu

LAUNCHES = (
    tb.Launch(12, 64, 40, 2048, carveout=50, stream=0, duration=1e-4),
    tb.Launch(8, 96, 16, cluster=2, stream=1, duration=2e-4),
    tb.Launch(5, 128, 255, stream=2, priority=-1, duration=1e-4),
)


@pytest.mark.tbsched_gpu
def test_launches_come_back_as_they_were_made(gpu: Gpu) -> None:
    with tb.capture() as captured:
        gpu.observe(tb.Sequence(LAUNCHES))
    program = captured.program
    assert program.device == gpu.info.name
    launches = program.sequence.launches
    for made in LAUNCHES:
        (number,) = [k for k, each in enumerate(launches) if each.blocks == made.blocks]
        found, row = launches[number], program.measured[number]
        for name in ("threads", "registers", "shared_memory", "carveout", "cluster", "priority"):
            assert getattr(found, name) == getattr(made, name), name
        assert (row["end_ns"] - row["start_ns"]) / 1e9 == pytest.approx(made.duration, rel=0.3)
        assert row["call_ns"] < row["start_ns"]
    assert len({row["channel"] for row in program.measured if row["start_ns"] > 0}) >= 3
