"""The GPU here as a device: its map is found in seconds, is kept, and predicts."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import tbsched as tb
from tbsched.calibration.boards import here
from tbsched.hardware.catalogue import device_titled
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that holds nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here.device_here.cache_clear()
    yield tmp_path
    here.device_here.cache_clear()


@pytest.fixture
def board(gpu: Gpu) -> Gpu:
    """One with the rules of the H200, whatever its map."""
    if gpu.info.details["compute_capability"] != "9.0":
        pytest.skip(f"nobody has compared the rules with this {gpu.info.name}")
    return gpu


def test_map_of_this_board_is_found_kept_and_predicts(board: Gpu, fresh: Path) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        start = time.monotonic()
        spec = tb.device("gpu")
        seconds = time.monotonic() - start
    print(f"{board.info.name}: {seconds:.1f} s; {[str(each.message) for each in said]}")
    assert spec.provenance["topology.gpcs"].kind == "measured"
    assert [path.parent.name for path in fresh.rglob("*.toml")] == [board.info.details["uuid"]]
    shipped = device_titled(board.info.name, board.info.sms)
    if shipped is not None:
        other = {row.path for row in tb.compare_devices(spec, shipped).values}
        assert other <= {"topology.gpcs", "topology.sm_preference", "limits.max_cluster"}
    here.device_here.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert tb.device("gpu") == spec
    report = tb.fuzz(
        board, "gpu", level="exact", max_examples=2000, max_seconds=20, seed=31, progress=False
    )
    assert not report.counterexamples, report


def test_gpu_says_what_the_shipped_file_says(board: Gpu) -> None:
    spec = tb.describe()
    shipped = tb.device("h200")
    said = [path for path, origin in spec.provenance.items() if origin.kind != "assumed"]
    assert "limits.max_cluster" in said
    other = [row for row in tb.compare_devices(spec, shipped).values if row.path in said]
    assert {row.path for row in other} <= {
        "device.title",
        "topology.sms",
        # A block's own reserve sets an SM to more than nothing.
        "allocation.shared_memory_configurations",
    }, other
