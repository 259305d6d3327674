"""A process, and a stand-in for cuda-gdb that answers with what a real one printed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tbsched.hangs import find

RECORDED = Path(__file__).parent / "recorded"
Answering: TypeAlias = Callable[..., None]


@pytest.fixture(autouse=True)
def seconds_between_looks(monkeypatch: pytest.MonkeyPatch) -> float:
    """Those of a user. Tests do not wait: what was recorded does not change."""
    seconds = find._SECONDS_BETWEEN_LOOKS
    monkeypatch.setattr(find, "_SECONDS_BETWEEN_LOOKS", 0.0)
    monkeypatch.setattr(find, "_NEWS_SECONDS", 0.01)
    return seconds


@pytest.fixture
def process() -> Iterator[int]:
    """The number of a process that does nothing."""
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as waits:
        yield waits.pid
        waits.kill()


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Answering:
    """Makes the debugger answer with a recorded session, or as ``mode`` says."""

    def answer(name: str, mode: str = "") -> None:
        monkeypatch.setenv("TBSCHED_CUDA_GDB", str(Path(__file__).with_name("fake_gdb.py")))
        monkeypatch.setenv("TBSCHED_FAKE_GDB", str(RECORDED / f"{name}.txt"))
        monkeypatch.setenv("TBSCHED_FAKE_GDB_COUNTER", str(tmp_path / "looks"))
        monkeypatch.setenv("TBSCHED_FAKE_GDB_MODE", mode)

    return answer
