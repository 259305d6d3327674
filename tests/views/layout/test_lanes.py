"""Spans of what ran: in lanes that do not overlap, or in bins that say so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import gpu, launch
from tbsched.views.layout.lanes import Spans, lanes_of, spans_by_sm, spans_by_stream

SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 9)), max_size=30)


@settings(max_examples=50, deadline=None)
@given(SPANS, st.sampled_from([1, 2**57]))
def test_no_two_spans_of_a_lane_overlap_and_lanes_are_few(
    spans: list[tuple[int, int, int]], unit: int
) -> None:
    row, begin, length = np.array(spans, np.int64).reshape(len(spans), 3).T
    begin, end = begin * unit, (begin + np.maximum(length, 1)) * unit
    lane, lanes = lanes_of(row, begin, end)
    for one in range(len(lanes)):
        mine = row == one
        moments = [int(((begin[mine] <= t) & (end[mine] > t)).sum()) for t in begin[mine]]
        assert lanes[one] == max(moments, default=0)
        for k in range(int(lanes[one])):
            own = mine & (lane == k)
            order = begin[own].argsort()
            assert (end[own][order][:-1] <= begin[own][order][1:]).all()
    assert (lane < lanes[row]).all() if len(row) else not len(lane)


@settings(max_examples=50, deadline=None)
@given(SPANS, st.sampled_from([0.0, 0.5, 3.0, 40.0]))
def test_short_spans_are_drawn_longer_but_for_half_of_what_is_idle(
    spans: list[tuple[int, int, int]], least: float
) -> None:
    row, begin, length = np.array(spans, np.int64).reshape(len(spans), 3).T
    end = begin + np.maximum(length, 1)
    lane, lanes = lanes_of(row, begin, end)
    drawn = Spans(("a", "b", "c"), lanes, row, lane, row, begin, end, 0, 40).drawn_until_ns(least)
    for k in range(len(row)):
        after = begin[(row == row[k]) & (lane == lane[k]) & (begin >= end[k])]
        half = (end[k] + after.min()) / 2 if len(after) else np.inf
        assert drawn[k] == max(end[k], min(begin[k] + least, half))


def test_span_that_takes_no_time_has_a_lane_of_its_own() -> None:
    row, begin = np.zeros(3, np.int64), np.array([5, 5, 0], np.int64)
    lane, lanes = lanes_of(row, begin, np.array([5, 5, 9]))
    assert sorted(lane.tolist()) == [0, 1, 2]
    assert lanes.tolist() == [3]


MIXED = tb.Sequence(
    [
        launch(6, stream=4, duration=1e-3, name="a"),
        launch(6, stream=2, duration=tb.Drawn("uniform", 1e-3, 9e-4)),
        launch(1, duration=5e-4),
    ]
)


def test_each_block_is_a_span_in_the_row_of_its_sm() -> None:
    trace = tb.predict(MIXED, gpu(sms=2))
    spans = spans_by_sm(trace)
    assert spans.titles == ("SM 0", "SM 1")
    assert spans.row.tolist() == trace.timeline["sm"].tolist()
    assert spans.launch.tolist() == trace.timeline["launch"].tolist()
    assert spans.begin_ns.tolist() == trace.timeline["start_ns"].tolist()
    assert (spans.zero_ns, spans.length_ns) == (0, round(trace.makespan * 1e9))
    assert spans.note == ""


def test_each_launch_is_a_span_in_the_row_of_its_stream() -> None:
    trace = tb.predict(MIXED, gpu(sms=2))
    spans = spans_by_stream(trace)
    assert spans.titles == ("stream 2", "stream 4", "own streams")
    assert spans.row.tolist() == [1, 0, 2]
    assert spans.end_ns[1] == trace[1].end_ns.max()  # type: ignore[union-attr]


def test_streams_beyond_the_rows_share_one() -> None:
    seq = tb.Sequence([launch(stream=k, duration=1e-3) for k in (7, 5, 3, "legacy")])
    spans = spans_by_stream(tb.predict(seq, gpu()), most_rows=3)
    assert spans.titles == ("stream legacy", "stream 3", "2 streams more")
    assert spans.row.tolist() == [2, 2, 1, 0]


def longest(trace: tb.Trace, rows: np.ndarray, begin: float, end: float) -> set[int]:
    """The launches whose blocks ran longest within a bin, one by one."""
    ran = np.zeros(len(trace))
    for block in trace.timeline[rows]:
        time = min(block["end_ns"], end) - max(block["start_ns"], begin)
        ran[block["launch"]] += max(time, 0)
    return set(np.flatnonzero(ran > 0.999 * ran.max()).tolist()) if ran.any() else set()


@pytest.mark.parametrize("part", [1, 2**16])
def test_bin_shows_the_launch_that_took_most_of_it(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tbsched.views.layout.lanes._PART", part)
    seq = tb.Sequence(
        [launch(9, stream=k, duration=tb.Drawn("exponential", 1e-3, seed=k)) for k in range(8)]
    )
    trace = tb.predict(seq, gpu(sms=6), "first_fit")
    spans = spans_by_sm(trace, most_rows=3)
    assert spans.titles == ("SM 0-1", "SM 2-3", "SM 4-5")
    assert spans.note == (
        "72 blocks and 6 SMs in 3 rows in 720 bins: a bin shows the launch that took most of it"
    )
    width = spans.length_ns / 240
    bins = 0
    for row, shown, begin, end in zip(
        spans.row, spans.launch, spans.begin_ns, spans.end_ns, strict=True
    ):
        bins += round((end - begin) / width)
        here = trace.timeline["sm"] // 2 == row
        for k in range(round(begin / width), round(end / width), 7):
            assert shown in longest(trace, here, k * width, (k + 1) * width)
    covered = np.zeros((3, 240), bool)
    for block in trace.timeline:
        first, last = block["start_ns"] / width, block["end_ns"] / width
        covered[block["sm"] // 2, int(first) : int(np.ceil(last))] = True
    assert bins == covered.sum()


def test_many_blocks_are_in_bins() -> None:
    trace = tb.predict(MIXED, gpu(sms=2))
    assert "13 blocks in 480 bins" in spans_by_sm(trace, most_spans=12).note
    assert "3 launches in 720 bins" in spans_by_stream(trace, most_spans=2).note


def test_nothing_ran() -> None:
    trace = tb.predict(tb.Sequence([tb.RecordEvent(0, 0)]), gpu())
    assert len(spans_by_sm(trace).row) == len(spans_by_stream(trace).row) == 0


def test_held_launches_have_no_times() -> None:
    with pytest.raises(ValueError, match="nobody recorded when the blocks of launch 0 ran"):
        spans_by_sm(tb.predict(tb.Sequence([launch()]), gpu()))


def test_copies_and_memsets_are_in_the_rows_of_their_streams() -> None:
    kernel = tb.Launch(1, 64, 16, stream=0, duration=1e-5)
    program = [kernel, tb.Copy(1 << 20, "h2d", stream=1), tb.Memset(1 << 20), kernel]
    trace = tb.predict(tb.Sequence(program), "h200")
    spans = spans_by_stream(trace)
    assert spans.titles == ("stream 0", "stream 1", "own streams")
    assert spans.launch.tolist() == [0, 1, 2, 3]
    assert spans.row.tolist() == [0, 0, 1, 2]
    assert trace.transfer_ns is not None
    assert spans.begin_ns[2:].tolist() == trace.transfer_ns[:, 0].tolist()
    assert spans_by_sm(trace).launch.tolist() == [0, 1]


def test_blocks_behind_a_copy_are_drawn_behind_it() -> None:
    kernel = launch(4, stream=0, duration=1e-3)
    trace = tb.predict(tb.Sequence([tb.Copy(256 << 20, "h2d", stream=0), kernel]), "h200")
    assert trace.transfer_ns is not None
    began, over = trace.transfer_ns[0].tolist()
    by_sm, by_stream = spans_by_sm(trace), spans_by_stream(trace)
    binned = spans_by_sm(trace, most_spans=0)
    for spans in (by_sm, by_stream, binned):
        assert (spans.zero_ns, spans.length_ns) == (by_stream.zero_ns, by_stream.length_ns)
        assert spans.zero_ns == began
    assert by_sm.begin_ns.min() >= over
    assert abs(binned.begin_ns.min() - by_sm.begin_ns.min()) <= by_sm.length_ns / 100
