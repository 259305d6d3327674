"""Once everything has been placed and has left once, the block scheduler takes no more memory."""

from __future__ import annotations

from pathlib import Path

from bench.conftest import output


def test_second_fill_and_drain_allocates_nothing(programs: Path) -> None:
    lines = [line.split(" ", 2) for line in output(programs / "allocations").splitlines()]
    assert len(lines) == 6
    for first, second, case in lines:
        assert int(first) > 0, case
        assert int(second) == 0, case
