"""Whatever writes a file: it appears whole, or what was there stays; no other file is left."""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tbsched as tb
from helpers import gpu, launch

TRACE = tb.predict(
    tb.Sequence([launch(900, duration=1e-3), launch(40, stream=1, duration=1e-3)]), gpu(8)
)
PROFILE = tb.sm.KernelProfile("add" * 100, {"dram": 1.0})
WRITERS: dict[str, Callable[[Path], object]] = {
    "a.jsonl": lambda path: tb.save_traces(path, [TRACE]),
    "a.jsonl.gz": lambda path: tb.save_traces(path, [TRACE] * 9),
    "a.jsonl.xz": lambda path: tb.save_traces(path, [TRACE] * 9),
    "a.toml": lambda path: tb.save_device(path, tb.device("h200")),
    "a.npz": lambda path: tb.sm.save_workload(tb.sm.preset("SCP", blocks=8), path),
    "a.json": lambda path: tb.sm.save_profiles([PROFILE], path),
    "a.csv": lambda path: tb.show.to_csv(TRACE, path),
    "a.html": lambda path: tb.show.to_html(TRACE, path),
    "a.pftrace": lambda path: tb.show.to_perfetto(TRACE, path),
}


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file grows beyond 100 bytes. Python itself would cut the bytecode of what is imported."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("is_there", [True, False])
def test_full_disk_leaves_what_was_there(
    tmp_path: Path, full_disk: None, name: str, is_there: bool
) -> None:
    place = tmp_path / name
    if is_there:
        place.write_bytes(b"old")
    with pytest.raises(OSError, match="File too large"):
        WRITERS[name](place)
    assert list(tmp_path.iterdir()) == ([place] if is_there else [])
    assert not is_there or place.read_bytes() == b"old"


@pytest.mark.parametrize("name", WRITERS)
def test_file_is_replaced_as_a_whole(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.write_bytes(b"old")
    WRITERS[name](place)
    assert list(tmp_path.iterdir()) == [place]
    assert place.stat().st_size > 100
