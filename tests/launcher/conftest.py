"""A GPU of four SMs that the fake driver emulates, and a host that is never late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tbsched as tb
from helpers import Fake
from tbsched.launcher.observe import Gpu


@pytest.fixture
def gpu(fake_gpu: tuple[Gpu, Fake]) -> Gpu:
    return fake_gpu[0]


@pytest.fixture
def punctual(gpu: Gpu, knobs: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A busy machine issues late, but these tests are about launches that come in time."""
    observe = gpu.observe

    def observe_in_time(seq: tb.Sequence, **options: Any) -> tb.Trace:
        calls = [event for event in seq if isinstance(event, tb.Launch | tb.GraphLaunch)]
        knobs.stand_still(len(calls) if seq.timed else 0)
        return observe(seq, **options)

    monkeypatch.setattr(gpu, "observe", observe_in_time)
    yield
    knobs.stand_still(0)
