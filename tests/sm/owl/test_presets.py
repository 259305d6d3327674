"""Presets beside the paper's tables of its workloads."""

from __future__ import annotations

import pytest

import tbsched as tb
from sm.machines import BANK, LINE, workload
from sm.owl.presets import GPU, TYPE_1, measured, printed, rows_shared
from tbsched.sm.workloads import LOAD

OFF = 5.0  # points, or percent
QUICK = ("SCP", "FWT", "SSC", "SAD")


def test_presets_are_those_of_the_paper() -> None:
    assert tb.sm.presets() == tuple(TYPE_1)


@pytest.mark.parametrize("name", tb.sm.presets())
def test_preset_shares_rows_as_table_4_says(name: str) -> None:
    blocks, consecutive = rows_shared(tb.sm.preset(name))
    assert blocks == pytest.approx(TYPE_1[name]["blocks_per_row"], rel=0.05)
    assert consecutive == pytest.approx(TYPE_1[name]["consecutive"], abs=OFF)


@pytest.mark.parametrize("name", QUICK)
def test_preset_is_as_the_tables_say_with_round_robin(name: str) -> None:
    paper, ours = printed(name), measured(tb.sm.preset(name))
    assert ours.pmem == pytest.approx(paper.pmem, rel=OFF / 100)
    assert ours.cinv == pytest.approx(paper.cinv, abs=OFF)
    assert ours.reuse == pytest.approx(paper.reuse, abs=OFF)


def test_rows_are_shared_as_the_paper_counts() -> None:
    # Blocks 0 to 3 in one row, as the paper's example; 0 and 2 in another; 1 alone in a third.
    lines = {0: (0, BANK // LINE), 1: (1, 2 * BANK // LINE), 2: (2, BANK // LINE + 1), 3: (3, 3)}
    kernel = workload([[(0, LOAD, line) for line in lines[block]] for block in range(4)])
    assert rows_shared(kernel) == pytest.approx(((4 + 2 + 1) / 3, 100 / 3))
    spread = GPU.changed(channel_interleave=256)
    two = workload([[(0, LOAD, 0)], [(0, LOAD, 4)], [(0, LOAD, 1)]])  # 4: another controller
    assert rows_shared(two, spread) == (1.5, 0.0)
    assert rows_shared(two) == (3.0, 100.0)
