"""Recordings of two ranks on two H200s: the first cause is the known defect, on its rank.

tests/lab/ranks recorded them; its README says what the programs are.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tbsched as tb
from tbsched.advice.account.peers import PEER
from tbsched.advice.explain.explanation import Explanation

RECORDINGS = Path(__file__).parent / "ranks"
# The rank with the defect, the cause, and a word of what it is by.
DEFECTS = {
    "tp_recompile": (1, "host", "jiterator_compile"),
    "eval_checkpoint": (0, "host", "busy"),
    "moe_imbalance": (0, "kernel", "nvjet"),
    "ring_straggler": (1, "kernel", "f64f64"),
    "prefill_decode": (0, "copy", "pageable"),
}


def explained(name: str) -> Explanation:
    return tb.explain(tb.load_program([RECORDINGS / f"{name}-rank{k}.json.xz" for k in (0, 1)]))


@pytest.mark.parametrize("name", DEFECTS)
def test_the_defect_is_the_first_cause_and_its_rank_the_guilty_one(name: str) -> None:
    found, (rank, cause, word) = explained(name), DEFECTS[name]
    first = found.roots[0]
    assert (first.gpu, first.cause) == (rank, cause)
    assert word in first.by
    other = 1 - rank
    waited = sum(row.seconds for row in found.account if (row.gpu, row.cause) == (other, PEER))
    assert first.waited > 0.5 * waited


@pytest.mark.parametrize("name", DEFECTS)
def test_causes_add_up_and_clocks_of_one_host_agree(name: str) -> None:
    found = explained(name)
    for gpu in (0, 1):
        total = sum(round(row.seconds * 1e9) for row in found.account if row.gpu == gpu)
        assert total == found.accounted.span_ns
    (_, rank) = found.program.ranks
    assert abs(rank.added) < 50e-6
    assert rank.uncertain is not None
    assert rank.uncertain < 50e-6


@pytest.mark.parametrize(("name", "most"), [("moe_imbalance", 0.02), ("eval_checkpoint", 0.05)])
def test_without_the_defect_hardly_anybody_waits(name: str, most: float) -> None:
    found = explained(f"{name}-without")
    waited = sum(row.seconds for row in found.account if row.cause == PEER)
    assert waited < most * 2 * found.span
