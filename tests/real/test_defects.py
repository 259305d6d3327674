"""Programs with one known defect: it is named first, and what its removal saves is predicted.

The quick ones of the recordings; tests/real/score_defects.py scores them all, and
docs/explanation/real-programs.md shows what it finds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from real.score_defects import scored

RECORDINGS = Path(__file__).parent / "defects"
LITTLE = 0.03  # of the time of the program
DEFECTS = {
    "h100": ("03_pageable_h2d", "06_cupy_no_pool", "18_loader_no_workers", "20_copy_same_stream"),
    "h200": ("04_list_to_tensor", "05_empty_cache", "09_python_between", "14_legacy_stream"),
}
NOTHING = {
    "h100": ("03_sync_large_ops", "04_pageable_scalar", "06_wait_not_last", "07_priority"),
    "h200": ("05_streams_full_gpu", "08_hidden_pause", "12_streams_dependent", "13_carveout"),
}


@pytest.mark.parametrize(("gpu", "name"), [(gpu, x) for gpu, own in DEFECTS.items() for x in own])
def test_a_defect_is_named_first_and_its_removal_predicted(gpu: str, name: str) -> None:
    row = scored(RECORDINGS / gpu, f"defect_{name}")
    assert row.named
    assert row.is_near(row.profiled)


@pytest.mark.parametrize(("gpu", "name"), [(gpu, x) for gpu, own in NOTHING.items() for x in own])
def test_nothing_is_promised_where_nothing_helps(gpu: str, name: str) -> None:
    row = scored(RECORDINGS / gpu, f"nothing_{name}")
    assert abs(row.profiled) < LITTLE
    assert row.most <= LITTLE


def test_a_wait_for_an_event_that_nobody_needs_is_found() -> None:
    row = scored(RECORDINGS / "h200", "defect_15_needless_wait")
    assert row.predicted == pytest.approx(row.profiled, rel=0.1)
