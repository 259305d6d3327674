"""The smallest workloads on which a scheduler loses, as ``losing.py`` found them."""

from __future__ import annotations

import pytest

from sm.losing import loses
from sm.machines import workload
from tbsched.sm.workloads import LOAD

# Of each warp the instructions before a load, and its line: 32 to a row, rows in order of banks.
FOUND = {
    ("owl", "bank_parallel"): [[(0, 32)], [(0, 160)]],
    ("bank_parallel", "locality"): [[(0, 0), (5, 1)], [(0, 0)], [(0, 0)], [(7, 0), (3, 128)]],
    ("locality", "cta_aware"): [
        [(0, 0)], [(0, 0), (0, 0)], [(0, 0)], [(0, 0)], [(0, 64)], [(6, 65), (3, 160), (0, 0)],
        [(0, 128), (6, 32)],
    ],
}  # fmt: skip


@pytest.mark.parametrize(("better", "than"), FOUND)
def test_scheduler_loses(better: str, than: str) -> None:
    loads = FOUND[better, than]
    kernel = workload([[(compute, LOAD, line) for compute, line in warp] for warp in loads])
    assert loses(kernel, better, than)
    assert not loses(kernel, than, better)
