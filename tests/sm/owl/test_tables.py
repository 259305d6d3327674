"""The paper's tables, added up."""

from __future__ import annotations

import statistics

from sm.owl.presets import TABLES, TYPE_1

TYPE_2 = TABLES["type_2"]


def mean(column: str) -> float:
    return statistics.fmean(row[column] for row in TYPE_1.values())


def test_averages_that_the_paper_prints() -> None:
    assert round(mean("cinv")) == 62
    assert (round(mean("cta_aware")), round(mean("locality"))) == (8, 18)
    # Table 4 prints 64 and 15: averages of more applications than its 19 rows.
    assert (round(mean("consecutive"), 1), round(mean("blocks_per_row"), 1)) == (53.5, 9.2)


def test_bits_of_section_4_5() -> None:
    # Right as it says: it counts 4 controllers of 4 banks. Table 1 has 8 controllers.
    assert (4 * 4 * 32, 8 * 4 * 32) == (512, 1024)


def test_inactive_cycles_of_all_applications() -> None:
    assert len(TYPE_1) == len(TYPE_2) == 19
    every = [row["cinv"] for row in (*TYPE_1.values(), *TYPE_2.values())]
    # Section 3: 32 % of the cycles are 70 % of the inactive ones. By Table 2 they are 77 %.
    assert round(statistics.fmean(every), 1) == 41.6
    assert round(100 * 32 / statistics.fmean(every)) == 77


def test_types_are_told_apart_by_their_gain() -> None:
    assert all(row["pmem"] >= 1.4 for row in TYPE_1.values())
    assert all(row.get("pmem", 0) < 1.4 for row in TYPE_2.values())


def test_slots_that_a_perfect_l1_leaves_empty() -> None:
    """12 applications leave a tenth and more empty: something else than memory delays them."""
    issuing = {name: row["pmem"] * (1 - row["cinv"] / 100) for name, row in TYPE_1.items()}
    assert max(issuing.values()) < 1.01
    assert sum(share < 0.9 for share in issuing.values()) == 12
