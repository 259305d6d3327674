"""Memory controllers: commands worked out by hand, and every constraint."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import examples
from sm.machines import BANK, CONTROLLER, LINE, OWL, ROW, small
from tbsched import _core
from tbsched.sm.memory import dram_commands

A, R, W, P = range(4)
Commands = list[tuple[int, int, int]]


def sent(requests: list[tuple[int, int, bool]], **options: Any) -> Commands:
    """Cycle, bank and kind of each command."""
    found = dram_commands(requests, **options)
    return [tuple(map(int, row)) for row in found[["cycle", "bank", "kind"]].tolist()]


READ_0 = (0, 0, False)


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        # A closed row: t_rcd. A hit: behind the burst.
        ([READ_0, (0, LINE, False)], [(0, 0, A), (12, 0, R), (16, 0, R)]),
        # A conflict: t_ras, t_rp and t_rc.
        ([READ_0, (0, ROW, False)], [(0, 0, A), (12, 0, R), (25, 0, P), (35, 0, A), (47, 0, R)]),
        # Another bank: t_rrd.
        ([READ_0, (0, BANK, False)], [(0, 0, A), (8, 1, A), (12, 0, R), (20, 1, R)]),
        # A write, then a read of the row: t_wl + burst + t_cdlr.
        ([(0, 0, True), (1, LINE, False)], [(0, 0, A), (12, 0, W), (29, 0, R)]),
        # A read, then a write of the row: t_rtw.
        ([READ_0, (1, LINE, True)], [(0, 0, A), (12, 0, R), (21, 0, W)]),
        # A write, then another row: t_wl + burst + t_wr, t_rp.
        ([(0, 0, True), (0, ROW, False)],
         [(0, 0, A), (12, 0, W), (34, 0, P), (44, 0, A), (56, 0, R)]),
        # The hit goes before the older conflict.
        ([READ_0, (1, ROW, False), (2, LINE, False)],
         [(0, 0, A), (12, 0, R), (16, 0, R), (25, 0, P), (35, 0, A), (47, 0, R)]),
        # The older of two conflicts goes first.
        ([READ_0, (1, 2 * ROW, False), (2, ROW, False)],
         [(0, 0, A), (12, 0, R), (25, 0, P), (35, 0, A), (47, 0, R), (60, 0, P), (70, 0, A),
          (82, 0, R)]),
    ],
)  # fmt: skip
def test_commands_are_those_worked_out_by_hand(
    requests: list[tuple[int, int, bool]], expected: Commands
) -> None:
    assert sent(requests) == expected


def test_fifth_activate_waits_for_four() -> None:
    gpu = OWL.changed(banks=8, t_faw=40, t_rrd=4)
    found = sent([(0, bank * BANK, False) for bank in range(5)], config=gpu)
    assert [cycle for cycle, _, kind in found if kind == A] == [0, 4, 8, 13, 40]


def test_open_row_is_prefetched_to_its_end_while_nobody_waits() -> None:
    found = dram_commands([(0, 5 * LINE % CONTROLLER, False)], prefetch=True)
    reads = found[found["kind"] == R]
    assert reads["column"].tolist() == [5, *range(5), *range(6, 32)]
    assert reads["prefetch"].tolist() == [False] + [True] * 31


@pytest.mark.parametrize(("threshold", "lines"), [(0, 8), (100, 16)])
def test_prefetch_ends_after_some_lines_where_another_row_is_asked_for(
    threshold: int, lines: int
) -> None:
    gpu = OWL.changed(prefetch_threshold=threshold)
    found = dram_commands([READ_0, (0, ROW, False)], gpu, prefetch=True)
    until = found[: list(found["kind"]).index(P)]
    assert int(until["prefetch"].sum()) == lines


@pytest.mark.parametrize(
    ("stop", "other", "lines"), [(0, ROW, 8), (1, ROW, 1), (2, ROW, 1), (1, BANK, 4), (2, BANK, 1)]
)
def test_prefetch_ends_when_another_row_is_asked_for(stop: int, other: int, lines: int) -> None:
    # One line has been prefetched when another row is asked for, of the same bank or of another.
    gpu = OWL.changed(prefetch_stop=stop)
    found = dram_commands([READ_0, (20, other, False)], gpu, prefetch=True)
    reads = found[found["kind"] == R]["prefetch"].tolist()
    assert reads[: lines + 3] == [False, *[True] * lines, False, True]


# Legal commands, as (cycle, bank, kind, row), the last of which is sent as early as it may be; and
# the constraint that it breaks a cycle earlier.
LEGAL: dict[str, list[tuple[int, int, int, int]]] = {
    "t_rcd": [(0, 0, A, 0), (12, 0, R, 0)],
    "t_rcd of a write": [(0, 0, A, 0), (12, 0, W, 0)],
    "t_ras": [(0, 0, A, 0), (25, 0, P, 0)],
    "t_rc": [(0, 0, A, 0), (25, 0, P, 0), (40, 0, A, 1)],
    "t_rp": [(0, 0, A, 0), (30, 0, P, 0), (40, 0, A, 1)],
    "t_rtp": [(0, 0, A, 0), (30, 0, R, 0), (32, 0, P, 0)],
    "t_wr": [(0, 0, A, 0), (20, 0, W, 0), (42, 0, P, 0)],
    "t_rrd": [(0, 0, A, 0), (8, 1, A, 0)],
    "t_ccd": [(0, 0, A, 0), (12, 0, R, 0), (17, 0, R, 0)],
    "t_ccd of writes": [(0, 0, A, 0), (12, 0, W, 0), (17, 0, W, 0)],
    "t_rtw": [(0, 0, A, 0), (12, 0, R, 0), (21, 0, W, 0)],
    "t_cdlr": [(0, 0, A, 0), (12, 0, W, 0), (29, 0, R, 0)],
    "t_faw": [(0, 0, A, 0), (8, 1, A, 0), (16, 2, A, 0), (24, 3, A, 0), (50, 4, A, 0)],
    "one line on the data bus": [(0, 0, A, 0), (12, 0, R, 0), (16, 0, R, 0)],
    "one command a cycle": [(0, 0, A, 0), (12, 0, R, 0), (13, 1, A, 0)],
}  # fmt: skip
# Where another constraint is as tight.
LOOSENED = {
    "t_rc": {"t_rc": 40},
    "t_ccd": {"t_ccd": 5},
    "t_ccd of writes": {"t_ccd": 5},
    "t_faw": {"t_faw": 50, "banks": 8},
}


def check(name: str, commands: list[tuple[int, int, int, int]]) -> None:
    cycle, bank, kind, row = (np.array(column) for column in zip(*commands, strict=True))
    values = dict(OWL.changed(**LOOSENED.get(name, {})).values)
    _core.sm_check_commands(cycle, bank, kind.astype(np.uint8), row, values)


@pytest.mark.parametrize("name", LEGAL)
def test_check_fires_a_cycle_too_early(name: str) -> None:
    commands = LEGAL[name]
    check(name, commands)
    *before, (cycle, *rest) = commands
    with pytest.raises(RuntimeError, match=rf"^{re.escape(name.partition(' of ')[0])} is broken"):
        check(name, [*before, (cycle - 1, *rest)])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("commands", "what"),
    [
        ([(0, 0, R, 0)], "an open row"),
        ([(0, 0, A, 0), (40, 0, A, 1)], "a closed bank"),
        ([(0, 0, A, 0), (40, 0, R, 1)], "the open row"),
        ([(0, 9, A, 0)], "the number of banks"),
    ],
)
def test_check_fires_for_a_bank_in_another_state(
    commands: list[tuple[int, int, int, int]], what: str
) -> None:
    with pytest.raises(RuntimeError, match=f"^{what} is broken by"):
        check("", commands)


def test_every_timing_parameter_can_fire() -> None:
    named = {name.partition(" of ")[0] for name in LEGAL}
    assert {name for name in OWL.values if name.startswith("t_")} - named == {"t_cl", "t_wl"}


@pytest.mark.parametrize(
    ("requests", "kind", "words"),
    [
        (3, TypeError, r"\.requests: a list is needed, got 3"),
        ([3], TypeError, r"\.requests\[0\]: a cycle, an address and whether it writes .* got 3"),
        ([READ_0, (0, 0)], TypeError, r"\.requests\[1\]: .* got \(0, 0\)"),
        ([(0.5, 0, False)], TypeError, r"\.requests\[0\]: cycle: an integer is needed, got 0\.5"),
        ([(-1, 0, False)], ValueError, r"\.requests\[0\]: cycle: -1 is outside 0\.\."),
        ([(0, 1 << 60, False)], ValueError, r"\.requests\[0\]: address: \d+ is outside 0\.\."),
        ([(0, 0, 2)], TypeError, r"\.requests\[0\]: write: True or False is needed, got 2"),
        (
            [(5, 0, True), (1, 0, True)],
            ValueError,
            r"\.requests\[1\]: cycle 1 is before 5, .*; sort them",
        ),
    ],
)
def test_request_that_means_nothing_is_named(
    requests: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=f"^dram_commands{words}"):
        dram_commands(requests)


REQUESTS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 100), st.booleans()), min_size=1, max_size=40
)


@settings(max_examples=examples(100), deadline=None)
@given(REQUESTS, st.booleans(), st.booleans(), st.integers(0, 60))
def test_each_request_is_served_once(
    drawn: list[tuple[int, int, bool]], prefetch: bool, hashed: bool, t_faw: int
) -> None:
    gpu = small(banks=4, hash_banks=int(hashed), t_faw=t_faw, bank_interleave=128)
    cycles = np.cumsum([row[0] for row in drawn]).tolist()
    requests = [(c, row[1] * LINE, row[2]) for c, row in zip(cycles, drawn, strict=True)]
    found = dram_commands(requests, gpu, prefetch=prefetch)  # each of which is checked
    columns = found[(found["kind"] == R) | (found["kind"] == W)]
    served = columns[~columns["prefetch"]]
    assert len(served) == len(requests)
    assert (served["kind"] == W).sum() == sum(row[2] for row in requests)
    # A line has one place, and no other line has it.
    places = {tuple(row) for row in served[["controller", "bank", "row", "column"]].tolist()}
    assert len(places) == len({row[1] for row in requests})
    for earlier, later in pairwise(found[found["controller"] == 0]["cycle"].tolist()):
        assert earlier < later
    assert prefetch or not columns["prefetch"].any()
