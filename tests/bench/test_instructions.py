"""How many instructions predictor and simulator execute in fixed cases, as callgrind counts them.

A slow-down shows without timing anything. Counts are those of one compiler and are compared for
that compiler only; a mismatch leaves the right file beside the old one, as ``.new``.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
from pathlib import Path

import pytest

from bench.conftest import FOLDER, output
from cpp_library import CXX

COUNTS = FOLDER / "counts.json"
TOLERANCE = 0.05

pytestmark = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed"
)


def compiler() -> str:
    """Which compiler counts are of, and for which machine."""
    return f"{output(CXX, '--version').splitlines()[0]}, {platform.machine()}"


def executed(program: Path, case: str) -> int:
    """Instructions of one case within ``measured``."""
    said = output(
        "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
        "--toggle-collect=measured", program, case,
    )  # fmt: skip
    found = re.search(r"Collected : (\d+)", said)
    assert found is not None, said
    return int(found[1])


def test_instructions_are_those_on_record(programs: Path) -> None:
    recorded = json.loads(COUNTS.read_text("utf-8"))
    if recorded["compiler"] != compiler():
        pytest.skip(f"counts are of {recorded['compiler']}; this is {compiler()}")
    counts = {case: executed(programs / "instructions", case) for case in recorded["counts"]}
    off = {
        case: f"{count} instead of {recorded['counts'][case]}"
        for case, count in counts.items()
        if abs(count / recorded["counts"][case] - 1) > TOLERANCE
    }
    if off:
        new = {"compiler": compiler(), "counts": counts}
        COUNTS.with_name("counts.json.new").write_text(json.dumps(new, indent=2) + "\n", "utf-8")
        pytest.fail(f"instructions differ by more than {TOLERANCE:.0%}: {off}")
