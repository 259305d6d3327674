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


def test_text_says_how_long_all_takes_where_copies_are_outside_the_makespan() -> None:
    kernel = tb.Launch(132, 1024, 32, stream=0, duration=1e-3)
    copy = tb.Copy(1 << 26, "h2d", stream=0, duration=5e-3)
    before = tb.predict(tb.Sequence([copy, kernel]), "h200")
    assert before.makespan == 1e-3
    assert "makespan 1 ms of the kernels; 6.006 ms with copies and memsets" in str(before)
    small = tb.Copy(1 << 20, "h2d", stream=1, duration=1e-5)
    within = tb.predict(tb.Sequence([kernel, small]), "h200", issue_times=[0, 1e-4])
    assert str(within).splitlines()[-1] == "makespan 1 ms"
