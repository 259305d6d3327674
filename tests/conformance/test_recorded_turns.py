"""Directed programs of two and three processes on an H200 and an H100, against the model.

The rules of copy engines, of events and of who comes first were found in those of the H100.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import tbsched as tb
from conformance.test_random_processes_with_copies import Row, at_once, predicted, recorded
from conformance.test_recorded_processes import rows_of
from tbsched.hardware.spec import DeviceSpec


def rows(gpu: str, kind: str) -> list[Row]:
    found = [row for row in rows_of(f"turns-{gpu}") if row["id"].startswith(kind)]
    assert found
    return found


def late_ends(row: Row, spec: DeviceSpec) -> list[int]:
    """Returns the errors of copies' ends that are more than 0.15 ms."""
    found, seen = predicted(row, spec).copies, recorded(row).copies
    late = [found[key][1] - seen[key][1] for key in seen]
    return [ns for ns in late if abs(ns) > 150_000]


@pytest.mark.parametrize("gpu", ["h200", "h100"])
@pytest.mark.parametrize("kind", ["engine", "pauses"])
def test_copies_of_processes_take_turns_in_an_engine(gpu: str, kind: str) -> None:
    spec = at_once(gpu)
    without = replace(spec, engine_slice_ns=0)
    for row in rows(gpu, kind):
        assert not late_ends(row, spec), row["id"]
        assert late_ends(row, without), row["id"]


@pytest.mark.parametrize("gpu", ["h200", "h100"])
@pytest.mark.parametrize("kind", ["first", "standing", "who", "visit"])
def test_launches_start_in_their_turn(gpu: str, kind: str) -> None:
    for row in rows(gpu, kind):
        found, seen = predicted(row, at_once(gpu)).launches, recorded(row).launches
        for key in seen:
            assert found[key][0] == pytest.approx(seen[key][0], abs=50_000), (row["id"], key)


@pytest.mark.parametrize("gpu", ["h200", "h100"])
def test_an_event_needs_a_turn_but_not_behind_a_copy(gpu: str) -> None:
    (fresh, kernel, copy) = (
        row
        for row in rows(gpu, "first")
        if row["id"] in ("first_none_d2h", "first_kernel_d2h", "first_h2d_d2h")
    )
    for row, waits in ((fresh, True), (kernel, True), (copy, False)):
        for run in (recorded(row), predicted(row, at_once(gpu))):
            ((_, end),) = run.copies.values()
            assert (end > tb.device(gpu).time_slice_ns) == waits
