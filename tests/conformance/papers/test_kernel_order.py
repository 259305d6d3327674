"""What the ICCD 2023 paper's advice is worth: the numbers of the page, on small samples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.papers.kernel_order import (
    KERNELS,
    KINDS,
    ORDERS,
    Gain,
    file_of,
    gain,
    kernels,
    measured,
    modelled,
    predicted,
    programs,
    rows,
)
from helpers import ROOT


def test_a_gain_counts_sets_and_not_what_is_equal() -> None:
    assert gain([1.0, 2.0, 3.0, 0.5], [2.0, 2.0, 2.0, 2.0]) == Gain(0.75, 0.5, 0.25)
    assert str(Gain(0.75, 0.5, 0.25)) == "0.75 (50 %, 25 %)"


@pytest.mark.parametrize("kind", KINDS)
def test_orders_are_of_the_same_kernels(kind: str) -> None:
    size = KINDS[kind]
    drawn, largest, smallest = programs(kind, 132, 1)
    assert [*drawn] == kernels(kind, 132, 0)
    sizes = [size(launch) for launch in largest.launches]
    assert sizes == sorted(sizes, reverse=True)
    assert [size(launch) for launch in smallest.launches] == sorted(sizes)
    for order in (drawn, largest, smallest):
        assert sorted(launch.stream for launch in order.launches) == [*range(KERNELS)]
        assert set(order.launches) == set(drawn.launches)


@pytest.mark.parametrize("name", ["rtx3090", "h200"])
def test_largest_first_beats_smallest_first(name: str) -> None:
    found = modelled(name, 40)
    for kind in KINDS:
        against = found[f"largest {kind} first", "smallest first"]
        assert against.median < 0.95
        assert against.faster > against.slower
    relaxed = found["any configuration", "the GPU as it is"]
    assert relaxed.median < 1
    assert relaxed.slower < relaxed.faster


def test_a_column_is_not_measured_until_its_file_is_there(tmp_path: Path) -> None:
    assert measured(tmp_path / file_of("h200")) == {}
    makespans = {
        kind: [round(1e9 * each) for each in predicted("h200", programs(kind, 132, 10))]
        for kind in KINDS
    }
    (tmp_path / file_of("h200")).write_text(json.dumps({"makespans_ns": makespans}), "utf-8")
    found = measured(tmp_path / file_of("h200"))
    assert set(found) == {(f"largest {kind} first", ORDERS[k]) for kind in KINDS for k in (0, 2)}
    header, lines = rows(tmp_path)
    assert header[-2:] == ["measured, H100", "measured, H200"]
    for line in lines:
        can_be = line[0].startswith("largest")
        assert line[-2] == ("not measured yet" if can_be else "cannot be")
        assert line[-1] == (str(found[line[0], line[1]]) if can_be else "cannot be")


def test_script_writes_what_the_page_reads(tmp_path: Path) -> None:
    script = ROOT / "tests" / "lab" / "timed" / "kernel_order.py"
    done = subprocess.run(
        [sys.executable, script, "--out", tmp_path, "--rehearse", "h200", "--sets", "5"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    ).stdout
    assert "shared memory: the model is off by 0.00% in the median" in done
    found = measured(tmp_path / file_of("h200"))
    assert all(str(each) in done for each in found.values())
