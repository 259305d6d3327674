"""Workloads of the paper's Type 2 beside its table of them."""

from __future__ import annotations

import statistics
import tomllib

import pytest

import tbsched as tb
from sm.owl.presets import GPU, TABLES, TYPE_1
from sm.owl.type_2 import KNOBS, TYPE_2, WITHOUT_WARPS, kernel, measured_of, printed

HELD = tomllib.loads(KNOBS.read_text("utf-8"))
QUICK = ("CON", "MM", "CP", *WITHOUT_WARPS)


def test_workloads_are_those_of_the_paper() -> None:
    assert list(HELD) == list(TYPE_2)


def test_rows_of_type_1_leave_these_averages_of_table_4_for_type_2() -> None:
    left = [
        2 * every - statistics.fmean(row[column] for row in TABLES["type_1"].values())
        for column, every in (("blocks_per_row", 15), ("consecutive", 64))
    ]
    assert len(TYPE_1) == len(TYPE_2)
    assert tuple(map(round, left)) == (21, 74) == (
        printed("CON").blocks_per_row, printed("CON").consecutive,
    )  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_workload_is_as_table_2_says(name: str) -> None:
    paper, ours = printed(name), measured_of(name, HELD[name])
    assert ours.pmem == pytest.approx(paper.pmem, rel=0.05)
    assert ours.cinv == pytest.approx(paper.cinv, abs=5)


@pytest.mark.parametrize("name", WITHOUT_WARPS)
def test_cores_have_no_warps_for_most_of_the_time(name: str) -> None:
    run = tb.sm.simulate(kernel(name, HELD[name]), "round_robin", GPU)
    assert run.without_warps > 0.5 > 10 * run.memory_blocked
