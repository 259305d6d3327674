"""What a host saves that does not make a call: its time by the profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tbsched as tb
from importers.written import call, kernel, kineto

US = 1e-6
TIMES = 20
PERIOD = 200.0  # us


def saved(tmp_path: Path, *events: dict[str, Any]) -> float:
    """Microseconds that the program takes less without a wait, for each of many alike."""
    repeated = [
        event | {"ts": event["ts"] + n * PERIOD, "args": event["args"] | number(event, n)}
        for n in range(TIMES)
        for event in events
    ]
    found = tb.explain(tb.load_program(kineto(tmp_path / "trace.json", *repeated), fit=False))
    words = f"without {TIMES} synchronisations"
    (saves,) = [x.saves for x in found.changes if x.what.startswith(words)]
    return saves / US / TIMES


def number(event: dict[str, Any], n: int) -> dict[str, int]:
    given = event["args"].get("correlation", 0)
    return {"correlation": given + 10 * n} if given else {}


@pytest.mark.parametrize("us", [4.0, 60.0])
def test_without_a_wait_its_time_by_the_profile_goes(tmp_path: Path, us: float) -> None:
    """Whether it is predicted to take less, as a profiler makes calls longer, or more."""
    told = saved(
        tmp_path,
        call(1, 0, 5), kernel(1, 8, 4, name="gemm"),
        call(2, 10, us, "cudaStreamSynchronize"),
        call(3, 120, 5), kernel(3, 128, 4, name="relu"),
    )  # fmt: skip
    assert told == pytest.approx(us + 5, abs=0.5)  # with what leads to the wait
