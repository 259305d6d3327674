"""Values that an operator of PyTorch reads, and the tests that only make them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tbsched as tb
from importers.written import call, kernel, kineto, move
from tbsched.advice.change import Change

US = 1e-6
TIMES = 20


def ran(name: str, begin: float, end: float) -> dict[str, Any]:
    """An operator of PyTorch."""
    return call(0, begin, end - begin, name) | {"cat": "cpu_op"}


def launching(name: str, begin: float, number: int) -> list[dict[str, Any]]:
    """An operator of 18 us with a kernel."""
    return [
        ran(name, begin, begin + 18),
        call(number, begin + 5, 5), kernel(number, begin + 12, 4, name=name),
    ]  # fmt: skip


def without_reads(
    tmp_path: Path, tests: list[str], reader: str, outer: str | None = None
) -> Change | None:
    """What is told of operators from 0, and a read behind them, all in an outer one or in none."""
    events: list[dict[str, Any]] = []
    for n in range(TIMES):
        at, number = 300.0 * n, 20 * n + 1
        events += launching("aten::mm", at, number)
        for k, name in enumerate(tests):
            events += launching(name, at + 20 + 20 * k, number + 1 + k)
        read = at + 20 + 20 * len(tests)
        events += [
            ran(reader, read, read + 20),
            call(number + 8, read + 3, 4, "cudaMemcpyAsync"),
            move(number + 8, read + 10, 1, name="Memcpy DtoH (Device -> Pinned)"),
            call(number + 9, read + 8, 10, "cudaStreamSynchronize"),
        ]
        events[-2]["args"]["bytes"] = 1
        if outer is not None:
            events += [*launching("aten::add", read + 24, number + 10), ran(outer, at, read + 44)]
    found = tb.explain(tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False))
    words = f"without {TIMES} calls of {reader}"
    return next((x for x in found.changes if x.what.startswith(words)), None)


def test_a_read_in_an_operator_that_computes_goes_by_itself(tmp_path: Path) -> None:
    told = without_reads(tmp_path, ["aten::cumsum"], "aten::item", "aten::repeat_interleave")
    assert told is not None
    assert "aten::item in aten::repeat_interleave, which wait" in told.what
    names = [launch.name for launch in told.sequence.launches]
    assert names == ["aten::mm", "aten::cumsum", "aten::add"] * TIMES
    assert told.saves == pytest.approx(TIMES * 22 * US, rel=0.05)  # with what leads to it


def test_a_test_goes_with_the_read_of_its_result(tmp_path: Path) -> None:
    tests = ["aten::eq", "aten::all"]
    told = without_reads(tmp_path, tests, "aten::is_nonzero")
    assert told is not None
    assert told.what.endswith("with the tests whose results they read (aten::all)")
    # What compares elements may be used elsewhere.
    assert [launch.name for launch in told.sequence.launches] == ["aten::mm", "aten::eq"] * TIMES
    # The last one is behind the last kernel that is left.
    assert told.saves == pytest.approx((TIMES - 1) * 44 * US, rel=0.05)


def test_in_an_operator_a_comparison_goes_with_its_test(tmp_path: Path) -> None:
    tests = ["aten::ge", "aten::all"]
    told = without_reads(tmp_path, tests, "aten::item", "aten::repeat_interleave")
    assert told is not None
    assert told.what.endswith("with the tests whose results they read (aten::all, aten::ge)")
    assert told.saves == pytest.approx(TIMES * 60 * US, rel=0.05)


@pytest.mark.parametrize("tests", [["aten::all", "aten::mul"], ["aten::sum"]])
def test_what_is_more_than_a_test_is_computed(tmp_path: Path, tests: list[str]) -> None:
    told = without_reads(tmp_path, tests, "aten::item")
    assert told is not None
    assert "tests" not in told.what
    assert [launch.name for launch in told.sequence.launches] == ["aten::mm", *tests] * TIMES
