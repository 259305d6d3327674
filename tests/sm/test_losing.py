"""The smallest workloads on which a scheduler loses, as ``losing.py`` found them."""

from __future__ import annotations

import pytest

from sm.losing import OF_BANK, OF_CONTROLLER, loses
from sm.machines import workload
from tbsched.sm.workloads import LOAD, Workload

# Each warp's instructions before a load, and its line: 32 to a row, rows in order of banks.
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
    kernel = kernel_of(FOUND[better, than])
    assert loses(kernel, better, than)
    assert not loses(kernel, than, better)


def kernel_of(loads: list[list[tuple[int, int]]]) -> Workload:
    return workload([[(compute, LOAD, line) for compute, line in warp] for warp in loads])


def test_first_prefetch_scheme_loses_less_easily() -> None:
    second = kernel_of(FOUND["owl", "bank_parallel"])
    of_bank = kernel_of([[(0, 32), (0, 128), (0, 2)], [(4, 0), (0, 1)]])
    of_controller = kernel_of([[(2, 128), (0, 3)], [(0, 0), (0, 1)]])
    for gpu, loser in ((OF_BANK, of_bank), (OF_CONTROLLER, of_controller)):
        assert not loses(second, "owl", "bank_parallel", gpu)
        assert loses(loser, "owl", "bank_parallel", gpu)


def test_prefetching_gains_where_a_warp_reads_on() -> None:
    for gpu in (OF_BANK, OF_CONTROLLER):
        assert loses(kernel_of([[(0, 0), (0, 1)]]), "bank_parallel", "owl", gpu)
