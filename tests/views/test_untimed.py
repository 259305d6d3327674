"""Traces of which nobody recorded when their blocks ran are shown all the same."""

from __future__ import annotations

import dataclasses

import numpy as np

import tbsched as tb
from helpers import gpu, launch
from tbsched import views


def test_trace_without_times_is_shown_by_where_its_blocks_went() -> None:
    sequence = tb.Sequence([launch(4, duration=1e-3), launch(8, stream=1, duration=1e-3)])
    timed = tb.predict(sequence, gpu())
    placements = tuple(tb.Placement(np.asarray(each.smid)) for each in timed)
    trace = dataclasses.replace(timed, placements=placements, waits=None)
    for value in (str(trace), repr(trace), views.html(trace), views.short(trace)):
        assert value
    assert "makespan" in str(timed)
    assert "makespan" not in str(trace)
