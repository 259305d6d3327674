"""The search for the fastest variant, on times that are made up."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tbsched as tb
from tbsched.sm.rewriting import Ratio, Search, Variant


def variants(*names: str) -> list[Variant]:
    return [Variant(name, "kernel", 32, "", 0, None, name.encode()) for name in names]


def noisy(means: dict[str, float], noise: float = 0.01) -> Callable[[Variant], Callable[[], float]]:
    """Times around a mean, with a drift that meets all."""
    draw, drift = random.Random(1), iter(range(10**6))
    return lambda variant: (
        lambda: means[variant.name] * draw.gauss(1, noise) * (1 + 1e-4 * next(drift))
    )


def search(means: dict[str, float], **options: int) -> Search:
    return tb.sm.search(variants(*means), noisy(means), progress=False, **options)


def test_the_faster_one_is_found_and_believed() -> None:
    found = search({"original": 1.0, "slow": 1.5, "fast": 0.9})
    assert found.best.variant.name == "fast"
    assert found.better
    assert found.gain.low <= 1 / 0.9 <= found.gain.high
    slow = found.timings[1]
    assert slow.dropped
    assert len(slow.seconds) < len(found.original.seconds)
    assert not found.timings[2].dropped


def test_the_luckiest_of_many_equals_is_not_believed() -> None:
    found = search({"original": 1.0, **{f"equal {k}": 1.0 for k in range(30)}}, rounds=10)
    assert found.best.median < found.original.median
    assert not found.better
    assert "none is faster by more than noise" in str(found)


def test_an_interval_holds_the_median_as_often_as_it_says() -> None:
    draw = random.Random(2)
    held = 0
    for _ in range(500):
        found = Ratio.of(draw.expovariate(1.0) for _ in range(15))
        held += found.low <= 0.6931 <= found.high
    assert held >= 0.95 * 500
    assert Ratio.of([1.0] * 5) == Ratio(1.0, 0.0, float("inf"))


def test_calls_are_timed_where_they_say_nothing() -> None:
    ran: list[str] = []
    found = tb.sm.search(
        variants("original", "other"),
        lambda variant: lambda: ran.append(variant.name),
        rounds=6,
        again=6,
        progress=False,
    )
    assert ran.count("original") == ran.count("other") == 1 + 6 + 6
    assert found.original.least > 0


def test_at_the_limit_six_rounds_are_run() -> None:
    found = search({"original": 1.0, "other": 1.0}, rounds=50, limit=0)
    assert len(found.original.seconds) == 6


@pytest.mark.parametrize(
    ("names", "took", "options", "message"),
    [
        (("original",), 1.0, {}, "at least one other"),
        (("original", "other"), 0.0, {}, "a positive time is needed"),
        (("original", "other"), 1.0, {"rounds": 5}, r"search\.rounds: 5 is outside 6\.\."),
        (("original", "other"), 1.0, {"again": 0}, r"search\.again"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    names: tuple[str, ...], took: float, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        tb.sm.search(variants(*names), lambda _: lambda: took, progress=False, **options)


class Function:
    """As CuPy has it."""

    launches: list[tuple[Any, ...]]

    def __init__(self) -> None:
        self.launches = []
        self.max_dynamic_shared_size_bytes = 0

    def __call__(self, *given: Any, shared_mem: int) -> None:
        self.launches.append((*given, shared_mem))


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Function:
    function = Function()
    module = SimpleNamespace(load=lambda cubin: None, get_function=lambda name: function)
    event = SimpleNamespace(record=lambda: None, synchronize=lambda: None)
    fake: Any = ModuleType("cupy")
    fake.cuda = SimpleNamespace(
        function=SimpleNamespace(Module=lambda: module),
        Event=lambda: event,
        get_elapsed_time=lambda first, last: 20.0,
    )
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return function


def test_the_launcher_times_launches_through_cupy(cupy: Function) -> None:
    (variant,) = variants("original")
    run = tb.sm.launcher((1, 2), 64, (32, 4), 65_536, repeats=4)(variant)
    assert run() == pytest.approx(0.005)
    assert cupy.launches == [((64, 1, 1), (32, 4, 1), (1, 2), 65_536)] * 4
    assert cupy.max_dynamic_shared_size_bytes == 65_536
