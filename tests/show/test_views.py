"""Values are shown by functions that are looked up by the name of their class."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

import tbsched as tb
from helpers import gpu, launch
from tbsched import views

TIMED = tb.Sequence([launch(4, duration=1e-3), launch(4, stream=0, duration=1e-3)])
HELD = tb.Sequence([launch(4)])
TABLES = [*views._TEXT.values(), *views._EXPLANATION.values()]


@pytest.mark.parametrize("place", TABLES)
def test_view_is_where_the_table_says(place: str) -> None:
    module, _, name = place.partition(":")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize(
    ("value", "begin"),
    [
        (lambda: tb.predict(HELD, gpu()), "NVIDIA GeForce RTX 3090, 1 SMs, policy ampere\n"),
        (lambda: tb.predict(TIMED, gpu()), "NVIDIA GeForce RTX 3090, 1 SMs, policy ampere\n"),
        (lambda: tb.compare(*[tb.predict(HELD, gpu())] * 2), "model rtx3090/ampere and model "),
        (lambda: tb.compare_times(*[tb.predict(TIMED, gpu())] * 2), "100.00 % of 1 pairs of laun"),
        (lambda: tb.best_order(TIMED.launches, gpu()), "order 0, 1: 1 ms, the best of all orders"),
        (lambda: tb.what_if(TIMED, gpu()), "change "),
        (lambda: tb.forced_even("rtx3090", launch()), "even: there is one block"),
        (lambda: tb.launch_configs("rtx3090", tb.Kernel(82 * 64, 16)), "rtx3090: "),
    ],
)
def test_value_prints_its_view(value: Callable[[], object], begin: str) -> None:
    shown = value()
    assert str(shown) == views.text(shown)
    assert str(shown).startswith(begin)


def test_what_nobody_shows_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"views: Launch is not one of .*Trace"):
        views.text(launch())


def test_class_that_is_derived_is_shown_as_its_base() -> None:
    class Mine(tb.Trace):
        pass

    trace = tb.predict(HELD, gpu())
    mine = Mine(trace.sequence, trace.device, trace.placements)
    assert str(mine) == str(trace)
