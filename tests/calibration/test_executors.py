"""Calibrations whose campaign an executor runs."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import tbsched as tb
from calibration.hidden import Hidden
from helpers import gpu
from tbsched.calibration.finding import TOLD
from tbsched.campaigns import Workers

LONG = 3600.0  # no test depends on the time


def test_campaign_of_an_executor_finds_the_same() -> None:
    spec = gpu(2, "tx2")
    with ThreadPoolExecutor(2) as threads:
        found = tb.calibrate(spec, LONG, sequences=600, executor=threads, progress=False)
    alone = tb.calibrate(spec, LONG, sequences=600, progress=False)
    assert found.report == alone.report
    assert found.certificate == alone.certificate
    with pytest.raises(TypeError, match=r"calibrate\.executor: a concurrent\.futures\.Executor"):
        tb.calibrate("xavier", LONG, executor=2, progress=False)  # type: ignore[arg-type]


class Dying(Hidden):
    """Takes one worker with it."""

    def __init__(self, spec: tb.DeviceSpec, once: Path) -> None:
        super().__init__(spec, tick=0)
        self.once = once

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        if multiprocessing.parent_process() is not None and not self.once.exists():
            self.once.touch()
            os._exit(9)
        return super().observe(seq)


def test_killed_worker_costs_a_calibration_nothing(tmp_path: Path) -> None:
    spec = gpu(2, "tx2")
    with Workers(2) as workers:
        found = tb.calibrate(
            Dying(spec, tmp_path / "died"), LONG, sequences=600, executor=workers, progress=False
        )
    assert (tmp_path / "died").exists()
    assert found.certificate.holds
    assert found.certificate.sequences == 600


class Boards(Hidden):
    """Another board in each worker, with another map."""

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        if threading.current_thread() is threading.main_thread():
            return super().observe(seq)
        other = replace(self.spec, sm_preference=self.spec.sm_preference[::-1])
        return tb.predict(seq, other)


def test_boards_that_differ_give_no_certificate() -> None:
    with ThreadPoolExecutor(2) as threads:
        found = tb.calibrate(
            Boards(gpu(2, "tx2")), LONG, sequences=600, executor=threads, progress=False
        )
    assert found.certificate.boards_differ
    assert (found.certificate.holds, found.certificate.disagreements) == (False, 0)
    assert found.finding("topology.sm_preference").kind == TOLD
    assert "calibrate each board for itself" in str(found)
