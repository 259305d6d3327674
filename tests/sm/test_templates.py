"""Templates: the same work with any threads and any reuse; and the search for the best."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tbsched as tb
from sm.machines import workload
from tbsched.sm.workloads import LOAD, NONE, STORE, Workload

SIZE = 64
WORDS = SIZE * SIZE


def by_warp(kernel: Workload) -> list[tuple[Any, Any]]:
    """The accesses and the words of each warp, without the row in front."""
    word = kernel.address.astype(np.int64) // 4
    return [
        (kernel.access[begin + 1 : end], word[begin + 1 : end])
        for begin, end in zip(kernel.rows[:-1], kernel.rows[1:], strict=True)
    ]


@pytest.mark.parametrize("reuse", [1, 4, 64])
@pytest.mark.parametrize(("blocks", "warps"), [(1, 1), (3, 5), (7, 8), (40, 8)])
def test_any_threads_compute_each_element_once(blocks: int, warps: int, reuse: int) -> None:
    """P_1: the work does not depend on the number of threads; some have none."""
    kernel = tb.sm.matrix_product(SIZE, blocks=blocks, warps_per_block=warps, reuse=reuse)
    assert kernel.blocks == blocks
    stored = []
    for access, word in by_warp(kernel):
        for piece in range(0, len(access), 2 * SIZE + 1):
            kinds, words = access[piece:][: 2 * SIZE + 1], word[piece:][: 2 * SIZE + 1]
            assert kinds.tolist() == [LOAD] * (2 * SIZE) + [STORE]
            row, column = divmod(int(words[-1]) - 2 * WORDS, SIZE)
            stored.append((row, column))
            assert words[0:-1:2].tolist() == [row * SIZE + k for k in range(SIZE)]
            assert words[1:-1:2].tolist() == [WORDS + k * SIZE + column for k in range(SIZE)]
    assert sorted(stored) == [(row, column) for row in range(SIZE) for column in (0, 32)]


def test_reuse_changes_data_and_no_instruction() -> None:
    """P_2 with its first set of transformations."""
    one, eight = (tb.sm.matrix_product(SIZE, blocks=4, reuse=n) for n in (1, 8))
    for name in ("rows", "compute", "access"):
        assert (getattr(one, name) == getattr(eight, name)).all()
    assert sorted(one.address) == sorted(eight.address)
    # Warps after each other share a row of the first matrix, or columns of the second one.
    columns = [{int(word[1]) for _, word in by_warp(kernel)[:8]} for kernel in (one, eight)]
    assert [len(each) for each in columns] == [2, 1]


def test_the_first_row_of_a_warp_computes_its_number() -> None:
    kernel = tb.sm.matrix_product(32, blocks=9, warps_per_block=8)
    assert (kernel.access[kernel.rows[:-1]] == NONE).all()
    assert np.diff(kernel.rows).tolist() == [66] * 32 + [1] * 40


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 40}, "matrix_product.size: 40 is no multiple of 32"),
        ({"size": 64, "reuse": 5}, "matrix_product.size: 64 is no multiple of reuse, 5"),
        ({"warps_per_block": 65}, "warps_per_block: 65 is outside 1..64"),
        ({"size": 4096}, "matrix_product.size: 4096 has .* accesses, more than"),
    ],
)
def test_what_cannot_be_is_named(given: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tb.sm.matrix_product(**given)


# -- the search -----------------------------------------------------------------------------------


def test_the_fastest_of_all_combinations_comes_first() -> None:
    """Few threads do not hide latency; with as many, reuse saves reads of L2."""

    def template(blocks: int, reuse: int) -> Workload:
        return tb.sm.matrix_product(SIZE, blocks=blocks, warps_per_block=2, reuse=reuse)

    values = {"blocks": (2, 28, 56), "reuse": (1, 8)}
    found = tb.sm.tune(template, values, "round_robin", "owl-table1")
    cycles = [run.counts["cycles"] for run in found]
    assert len(found) == 6
    assert cycles == sorted(cycles)
    assert cycles[-1] > 5 * cycles[0]
    assert found[-1].workload.startswith("matrix_product 64 blocks=2 ")
    for run in found:
        _, _, blocks, reuse = run.workload.split()
        alone = template(int(blocks.partition("=")[2]), int(reuse.partition("=")[2]))
        again = tb.sm.simulate(alone, "round_robin", "owl-table1")
        assert again.counts["cycles"] == run.counts["cycles"]


def test_efficiency_is_the_fewest_cycles_over_those_it_took() -> None:
    """N_t over N_r: 1.0 is reached by many warps that only compute, and never passed."""
    gpu = tb.sm.config("owl-table1")
    issued_per_cycle = gpu["cores"] * gpu["issue_width"] / gpu["issue_cycles"]
    found = tb.sm.tune(
        lambda blocks: tb.sm.matrix_product(SIZE, blocks=blocks), {"blocks": (1, 28)},
        "round_robin", gpu,
    )  # fmt: skip
    for run in found:
        least = run.counts["instructions"] / issued_per_cycle
        assert run.efficiency == pytest.approx(least / run.counts["cycles"])
    compute = workload([[(1000, NONE, 0)]] * 28 * 8, per_block=8)
    assert 0.95 < tb.sm.simulate(compute, "round_robin", gpu).efficiency <= 1


@pytest.mark.parametrize(
    ("template", "values", "message"),
    [
        (3, {"reuse": [1]}, "tune.template: a function is needed, got 3"),
        (tb.sm.matrix_product, {"reuse": []}, "tune.reuse: no value; one or more are needed"),
        (tb.sm.matrix_product, [1], r"tune.values: values by parameter are needed, got \[1\]"),
        (lambda blocks: blocks, {"blocks": [1]}, "tune.template: it returns 1, not a workload"),
    ],
)
def test_searches_that_make_no_sense_are_refused(template: Any, values: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        tb.sm.tune(template, values)
