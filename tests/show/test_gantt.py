"""A timed sequence drawn: a rectangle per block, none hidden behind another."""

from __future__ import annotations

import itertools

import pytest

import tbsched as tb
from helpers import gpu, launch
from tbsched.show import plot

pytest.importorskip("matplotlib")


def rectangles(trace: tb.Trace) -> list[tuple[float, float, float, float]]:
    """(left, bottom, right, top) of each block."""
    (collection,) = plot(trace).axes[0].collections
    boxes = [path.get_extents() for path in collection.get_paths()]
    return [(box.x0, box.y0, box.x1, box.y1) for box in boxes]


def test_each_block_has_a_rectangle_and_no_two_overlap() -> None:
    events = [
        launch(7, stream=0, duration=tb.Drawn("uniform", 1e-3, 9e-4)),
        launch(20, stream=0, duration=tb.Drawn("exponential", 1e-3)),
        launch(9, warps=3, duration=5e-4),
    ]
    found = rectangles(tb.predict(tb.Sequence(events), gpu(sms=2)))
    assert len(found) == 36
    for a, b in itertools.combinations(found, 2):
        width = min(a[2], b[2]) - max(a[0], b[0])
        height = min(a[3], b[3]) - max(a[1], b[1])
        assert min(width, height) < 1e-9


def test_block_is_in_the_row_of_its_sm_at_its_time_in_ms() -> None:
    one = tb.Sequence([launch(2, duration=3e-3)])
    assert rectangles(tb.predict(one, gpu(sms=2))) == [(0, -0.5, 3, 0.5), (0, 0.5, 3, 1.5)]


def test_launches_have_a_legend_up_to_twenty() -> None:
    for count in (20, 21):
        trace = tb.predict(tb.Sequence([launch(duration=1.0, name="x")] * count), gpu())
        assert len(plot(trace).legends) == (count == 20)
