"""What CUPTI recorded is the same program, whether a capture tells it or Nsight Systems."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tbsched as tb
from importers.exported import nsys_of
from importers.written import VERSIONS

RECORDINGS = Path(__file__).parents[1] / "real" / "recordings" / "h100"
# Events and copies; memsets and priorities; clusters; calls that wait for the GPU.
PROGRAMS = ("copies_pipeline", "priorities", "cluster_gemm", "cupy_legacy_stream")
MEASURED = ("start_ns", "end_ns", "call_ns", "return_ns", "shared_memory_executed")
SINCE = {"cluster": 2026, "carveout": 2026, "priority": 2023, "non_blocking": 2023}


@pytest.fixture(scope="module", params=PROGRAMS)
def recorded(request: pytest.FixtureRequest) -> tuple[Path, tb.Program]:
    place = RECORDINGS / f"{request.param}-a.jsonl.xz"
    return place, tb.load_program(place, fit=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_export_is_the_program_of_the_capture(
    tmp_path: Path, recorded: tuple[Path, tb.Program], version: int
) -> None:
    place, captured = recorded
    exported = tb.load_program(nsys_of(place, tmp_path / "report.sqlite", version), fit=False)
    assert list(map(type, exported.sequence)) == list(map(type, captured.sequence))
    for field in MEASURED:
        np.testing.assert_array_equal(exported.measured[field], captured.measured[field])
    fields = ["name", "blocks", "threads", "registers", "shared_memory", "stream", "cooperative"]
    fields += [name for name, since in SINCE.items() if version >= since]
    for here, there in zip(exported.sequence.launches, captured.sequence.launches, strict=True):
        assert [getattr(here, name) for name in fields] == [getattr(there, name) for name in fields]
    assert exported.host == captured.host
