"""What a host saves that does not make a call: its time by the profile, and what leads to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tbsched as tb
from importers.written import call, kernel, kineto

US = 1e-6
TIMES = 20
PERIOD = 200.0  # us


def ran(name: str, begin: float, end: float) -> dict[str, Any]:
    """An operator of PyTorch."""
    return call(0, begin, end - begin, name) | {"cat": "cpu_op"}


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


@pytest.mark.parametrize(
    ("between", "leads_us"),
    [
        ([], 18),
        ([ran("aten::view", 20, 24)], 9),
        ([call(4, 20, 4, "cudaEventRecord")], 9),
        ([call(4, 32, 0.5, "cudaStreamIsCapturing")], 18),  # only asks, and for the wait
    ],
    ids=["nothing", "operator", "call", "question"],
)
def test_what_leads_to_a_wait_is_since_the_last_thing_that_the_host_did(
    tmp_path: Path, between: list[dict[str, Any]], leads_us: float
) -> None:
    told = saved(
        tmp_path,
        call(1, 0, 5), kernel(1, 8, 4, name="gemm"), call(9, 10, 5), kernel(9, 18, 18, name="add"),
        *between, call(2, 33, 10, "cudaStreamSynchronize"),
        call(3, 120, 5), kernel(3, 128, 4, name="relu"),
    )  # fmt: skip
    assert told == pytest.approx(10 + leads_us, abs=0.6)


def test_python_takes_no_longer_to_a_wait_than_20_us(tmp_path: Path) -> None:
    told = saved(
        tmp_path,
        call(1, 0, 5), kernel(1, 8, 96, name="gemm"),
        call(2, 100, 10, "cudaStreamSynchronize"),
        call(3, 150, 5), kernel(3, 158, 4, name="relu"),
    )  # fmt: skip
    assert told == pytest.approx(10 + 20, abs=0.6)
