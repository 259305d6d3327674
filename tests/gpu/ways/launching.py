"""What the tests of ways to launch share."""

from __future__ import annotations

import time

import pytest

import tbsched as tb
from tbsched.launcher.observe import Gpu
from tbsched.program.sequence import Event

# A clock that is read on two SMs, and what a launch takes.
NEAR_NS = 20_000
LONG = 0.002  # seconds


def run(blocks: int = 1, seconds: float = LONG, **others: object) -> tb.Launch:
    return tb.Launch(blocks, 32, 16, duration=seconds, **others)  # type: ignore[arg-type]


def observed(gpu: Gpu, *events: Event) -> tb.Trace:
    return gpu.observe(tb.Sequence(events))


def starts(trace: tb.Trace) -> list[int]:
    return [int(placement.start_ns.min()) for placement in trace]  # type: ignore[union-attr]


def ends(trace: tb.Trace) -> list[int]:
    return [int(placement.end_ns.max()) for placement in trace]  # type: ignore[union-attr]


def needs_dependent_launches(gpu: Gpu) -> None:
    if gpu.info.details["compute_capability"] < "9.0":
        pytest.skip("no programmatic dependent launches")


def parts(**split: int | bool) -> list[tb.Partition]:
    groups, rest = tb.split_sms("h200", **split)  # type: ignore[arg-type]
    return [*groups, rest] if rest else [*groups]


def free(gpu: Gpu) -> None:
    begin = time.monotonic()
    assert observed(gpu, tb.Launch(gpu.info.sms, 1024, 32))[0].placed == gpu.info.sms
    assert time.monotonic() - begin < 1
