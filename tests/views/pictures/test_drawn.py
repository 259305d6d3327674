"""What pictures draw is what the traces say."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from helpers import KB, RESERVE, ROOT, gpu, launch, released

pytest.importorskip("matplotlib")

Box = tuple[float, float, float, float]  # left, bottom, right, top
TWO = gpu(sms=2)


def boxes(collection: Any) -> list[Box]:
    found = [path.get_extents() for path in collection.get_paths()]
    return [(box.x0, box.y0, box.x1, box.y1) for box in found]


def cells(ax: Any) -> list[list[int]]:
    """The numbers of a heat map; 0 where nothing is drawn."""
    (image,) = ax.images
    return np.ma.filled(image.get_array(), 0).tolist()


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


# -- gantt ----------------------------------------------------------------------------------------


def test_each_block_has_a_rectangle_in_the_row_of_its_sm_and_no_two_overlap() -> None:
    events = [
        launch(7, stream=0, duration=tb.Drawn("uniform", 1e-3, 9e-4)),
        launch(20, stream=0, duration=tb.Drawn("exponential", 1e-3)),
        launch(9, warps=3, duration=5e-4),
    ]
    trace = tb.predict(tb.Sequence(events), TWO)
    (collection,) = tb.show.gantt(trace).collections
    found = boxes(collection)
    assert sorted(round(bottom) for _, bottom, _, _ in found) == sorted(trace.timeline["sm"])
    for a, b in itertools.combinations(found, 2):
        width = min(a[2], b[2]) - max(a[0], b[0])
        height = min(a[3], b[3]) - max(a[1], b[1])
        assert min(width, height) < 1e-9


def test_time_is_in_the_unit_that_suits_it() -> None:
    for duration, unit in ((3.0, "s"), (3e-3, "ms"), (3e-6, "us")):
        ax = tb.show.gantt(tb.predict(tb.Sequence([launch(2, duration=duration)]), TWO))
        assert ax.get_xlabel() == unit
        (collection,) = ax.collections
        assert [(left, right) for left, _, right, _ in boxes(collection)] == [(0, 3), (0, 3)]


def test_streams_have_rows_and_names_are_written_where_they_fit() -> None:
    durations = {"long_enough": 1e-3, "no": 1e-6}
    events = [launch(2, stream=s, duration=d, name=n) for s in (0, 1) for n, d in durations.items()]
    ax = tb.show.gantt(tb.predict(tb.Sequence(events), TWO), by="stream")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["stream 0", "stream 1"]
    assert texts(ax).count("long_enough") == 2
    assert "no" not in texts(ax)


def test_many_blocks_are_drawn_as_bins_and_the_picture_says_so() -> None:
    trace = tb.predict(tb.Sequence([launch(13_000, duration=1e-6, name="many")]), TWO)
    ax = tb.show.gantt(trace)
    (image,) = ax.images
    pixels = image.get_array()
    assert pixels.shape[0] == 2
    assert (pixels[:, :, 3] == 255).all()  # both SMs are busy all the time
    assert any("13,000 blocks in" in text for text in texts(ax))


@pytest.mark.parametrize("by", ["sm", "stream"])
@pytest.mark.parametrize(("launches", "period_ns"), [(80, 430_000), (200, 10_000)])
def test_kernels_narrower_than_a_pixel_are_drawn_and_what_is_idle_stays_so(
    by: str, launches: int, period_ns: int
) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import to_rgb

    from tbsched.views.layout.colours import colours_of

    events = [launch(2, stream=0, duration=2e-6, name="k")] * launches
    device = gpu(sms=2, launch_latency_ns=0, completion_latency_ns=0)
    trace = tb.predict(tb.Sequence(events), device, host=[period_ns / 1e9] * launches)
    figure = tb.show.gantt(trace, by=by).get_figure(root=True)
    assert figure is not None
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[:, :, :3].astype(int)
    box = figure.axes[0].get_window_extent()
    row = picture[picture.shape[0] - round(box.y0 + box.height * 0.7)]
    ink = 255 - row[round(box.x0) + 2 : round(box.x1)]
    full = 255 - 255 * np.array(to_rgb(colours_of(events)[0]))
    shares = ink @ full / (full @ full)  # of a pixel that is covered
    assert np.abs(ink - np.outer(shares, full)).max() < 4  # nothing else is there
    # Each but the first, which the axis covers, has about a pixel.
    assert 0.95 * launches <= shares.sum() <= 1.1 * launches
    found = np.flatnonzero(np.diff((shares > 0.1).astype(int), prepend=0) == 1)
    assert len(found) >= launches - 1


def test_a_profile_is_drawn_as_it_was_measured_and_titles_say_which_is_which() -> None:
    program = tb.load_program(next((ROOT / "tests/profiles/kinds").glob("04*")), fit=False)
    ax = tb.show.gantt(program)
    (collection,) = ax.collections
    starts = program.measured["start_ns"] - program.measured["start_ns"].min()
    lefts = [left for left, _, _, _ in boxes(collection)]
    assert lefts == pytest.approx((starts / 1e6).tolist())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["legacy stream 7"]
    assert ax.get_title("left").startswith("NVIDIA H100 80GB HBM3, measured: launches in each")
    trace = tb.predict(program.sequence, "h100", host=program.host)
    predicted = tb.show.gantt(trace, by="stream")
    assert ", predicted by policy hopper: launches in" in predicted.get_title("left")
    with pytest.raises(ValueError, match="a profile does not say on which SM blocks ran; by='str"):
        tb.show.gantt(program, by="sm")


def test_jobs_of_a_task_have_one_colour_and_their_deadlines() -> None:
    work = launch(2, duration=1e-3, name="work")
    urgent = launch(1, duration=5e-4)
    released = tb.periodic(
        [
            tb.Task("long", [work, work], period=4e-3),
            tb.Task("brake", [urgent], period=2e-3, offset=1e-3, deadline=4e-4),
        ]
    )
    trace = tb.predict(released.sequence, TWO, issue_times=released.issue_times)
    missed = released.responses(trace).missed
    assert 0 < len(missed) < len(released.jobs)
    ax = tb.show.gantt(trace, tasks=released)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["long", "brake"]
    legend = ax.get_legend()
    assert legend is not None
    jobs = {
        task.name: sum(job.task == task.name for job in released.jobs) for task in released.tasks
    }
    words = [text.get_text() for text in legend.get_texts()]
    assert words == [f"long ({2 * jobs['long']})", f"brake ({jobs['brake']})"]
    bars, *marks = ax.collections
    assert len(np.unique(bars.get_facecolor(), axis=0)) == 2
    assert "0 work" in texts(ax)
    tall = [mark for mark in marks if np.ptp(mark.get_segments()[0][:, 1]) == 1]
    assert sorted(mark.get_segments()[0][0, 0] for mark in tall) == pytest.approx(
        sorted(1e3 * job.deadline for job in released.jobs)
    )
    in_red = [mark for mark in tall if tuple(mark.get_color()[0]) != tuple(tall[0].get_color()[0])]
    first_is_late = released.responses(trace).jobs[0].missed
    assert not first_is_late
    assert len(in_red) == len(missed)
    starts = sorted(left for left, _, _, _ in boxes(bars))
    assert starts[0] == pytest.approx(1e3 * min(p.start_ns.min() for p in trace) / 1e9)
    by_sm = tb.show.gantt(trace, by="sm", tasks=released)
    assert len(np.unique(by_sm.collections[0].get_facecolor(), axis=0)) == 2
    other = tb.periodic([tb.Task("long", [work], period=4e-3)])
    with pytest.raises(ValueError, match="tasks: another sequence than that of the trace"):
        tb.show.gantt(trace, tasks=other)


def test_what_has_no_times_and_no_such_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="nobody recorded when the blocks of launch 0 ran"):
        tb.show.gantt(tb.predict(tb.Sequence([launch()]), TWO))
    timed = tb.predict(tb.Sequence([launch(duration=1.0)]), TWO)
    with pytest.raises(ValueError, match="by: 'streams' is not one of sm, stream; did you mean"):
        tb.show.gantt(timed, by="streams")


def test_map_of_partitions_has_a_colour_for_each() -> None:
    groups, rest = tb.split_sms("h200", 32)
    ax = tb.show.sm_map(tb.device("h200"), partitions=[*groups, rest])
    colours = ax.collections[0].get_facecolor()
    assert [len(np.unique(colours[[*part.sms]], axis=0)) for part in (*groups, rest)] == [1] * 5
    assert len(np.unique(colours, axis=0)) == 5
    legend = ax.get_legend() or ax.figure.legends[0]
    words = [text.get_text() for text in legend.get_texts()]
    assert (words[0], words[-1]) == ("0: 32 SMs", "left over: 4 SMs")
    with pytest.raises(ValueError, match=r"sm_map\.partitions\[1\]\.sms: 7 is outside 0\.\.1"):
        tb.show.sm_map(gpu(sms=2), partitions=[tb.Partition((0,)), tb.Partition((7,))])
    with pytest.raises(TypeError, match="sm_map: partitions: they are shown in the map of a Dev"):
        tb.show.sm_map(tb.predict(tb.Sequence([launch()]), gpu()), partitions=groups)


# -- sm_map ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["h200", "rtx3090"])
def test_map_of_a_device_shows_each_sm_in_the_row_of_its_gpc(name: str) -> None:
    spec = tb.device(name)
    ax = tb.show.sm_map(spec)
    row_of = {
        int(t.get_text()): int(t.get_position()[1]) for t in ax.texts if t.get_text().isdigit()
    }
    assert sorted(row_of) == list(range(spec.sms))
    for row, tpcs in enumerate(spec.gpcs):
        sms = {tpc * spec.sms_per_tpc + k for tpc in tpcs for k in range(spec.sms_per_tpc)}
        assert sms == {sm for sm in row_of if row_of[sm] == row}


def test_map_of_a_trace_has_a_bar_per_launch_as_tall_as_it_has_blocks() -> None:
    trace = tb.predict(tb.Sequence([launch(3), launch(2), *released(0)]), TWO)
    heights = {
        at: [
            round(top - bottom, 3)
            for _, bottom, _, top in boxes(tb.show.sm_map(trace, at=at).collections[1])
        ]
        for at in (1, 2, 3, None)
    }
    full = heights[1][0]  # SM 0 has two blocks, SM 1 one
    assert heights[1] == [full, full / 2]
    assert len(heights[2]) == 4
    assert heights[3] == heights[None] == [full, full]
    assert any("After 2 of 3 events." in text for text in texts(tb.show.sm_map(trace, at=2)))
    with pytest.raises(ValueError, match=r"sm_map\.at: 4 is outside 0\.\.3"):
        tb.show.sm_map(trace, at=4)


def test_map_of_a_timed_trace_is_of_a_moment() -> None:
    events = [launch(2, stream=0, duration=1e-3), launch(1, stream=0, duration=1e-3)]
    trace = tb.predict(tb.Sequence(events), TWO)
    assert len(boxes(tb.show.sm_map(trace).collections[1])) == 2
    assert len(boxes(tb.show.sm_map(trace, at=1.5e-3).collections[1])) == 1
    assert any("blocks of launch" in t or "wait" in t for t in texts(tb.show.sm_map(trace)))


# -- blocks and compared --------------------------------------------------------------------------


def test_heat_map_counts_the_blocks_placed_before_the_next_event() -> None:
    trace = tb.predict(tb.Sequence([launch(3), launch(40, name="busy"), launch(1)]), TWO)
    ax = tb.show.blocks(trace)
    assert cells(ax) == [p.occupancy(2).tolist() for p in trace]
    assert [label.get_text() for label in ax.get_yticklabels()][1] == "1: busy (11 wait)"


def test_heat_map_adds_up_launches_where_there_are_too_many() -> None:
    trace = tb.predict(tb.Sequence([launch(2, duration=1e-6)] * 401), TWO)
    ax = tb.show.blocks(trace)
    assert cells(ax) == [[2, 2]] * 200 + [[1, 1]]
    assert any("Each row is the sum of 2 launches" in text for text in texts(ax))


def test_compared_is_b_less_a_with_a_frame_around_the_first_difference() -> None:
    seq = tb.Sequence([launch(1), launch(3), launch(2)])
    a, b = (tb.predict(seq, TWO, policy) for policy in ("first_fit", "round_robin"))
    ax = tb.show.compared(tb.compare(a, b))
    assert cells(ax) == [
        (q.occupancy(2) - p.occupancy(2)).tolist() for p, q in zip(a, b, strict=True)
    ]
    (frame,) = ax.patches
    assert frame.get_bbox().bounds == (-0.5, 0.5, 2, 1)
    assert any("The first, framed, is launch 1, on SM 0, 1" in text for text in texts(ax))
    assert cells(tb.show.compared(a, b)) == cells(ax)
    same = tb.show.compared(a, a)
    assert not same.patches
    assert any("Every block of 3 launches is on the same SM" in text for text in texts(same))


def test_compared_shows_which_blocks_are_elsewhere_if_only_the_order_differs() -> None:
    a = tb.predict(tb.Sequence([launch(3)]), TWO)
    (placement,) = a
    other = dataclasses.replace(placement, smid=placement.smid[::-1].copy()[[1, 0, 2]])
    ax = tb.show.compared(a, dataclasses.replace(a, placements=(other,)))
    moved = placement.smid[placement.smid != other.smid]
    assert cells(ax) == [np.bincount(moved, minlength=2).tolist()]
    assert any("Only the order of blocks differs" in text for text in texts(ax))


def test_compared_over_time_has_the_area_of_the_blocks_time() -> None:
    seq = tb.Sequence(
        [launch(4, stream=0, duration=1e-3, name="a"), launch(2, stream=0, duration=2e-3)]
    )
    a = tb.predict(seq, TWO)
    b = tb.predict(seq, gpu(sms=2, completion_latency_ns=500_000))
    ax = tb.show.compared(a, b)
    assert ax.get_yticklabels()[0].get_text() == "0: a"
    for row, peak in enumerate((4, 2)):
        line = ax.lines[2 * row]
        times, heights = (np.asarray(values, float) for values in line.get_data())
        area = np.diff(times) @ ((row + 0.44 - heights[:-1]) / 0.88 * peak)
        assert area == pytest.approx(4, abs=0.01)  # blocks x ms
    assert texts(ax)[-1] == "Makespan 3 ms filled and 3.5 ms line: -14.29 %."


def test_compared_takes_traces_of_one_sequence() -> None:
    a, b = (tb.predict(tb.Sequence([launch(n)]), TWO) for n in (1, 2))
    with pytest.raises(ValueError, match="of different sequences"):
        tb.show.compared(a, b)
    with pytest.raises(TypeError, match=r"observation: a Trace is needed, got None"):
        tb.show.compared(a)
    with pytest.raises(TypeError, match="a Diff holds both traces"):
        tb.show.compared(tb.compare(a, a), a)


# -- ladder ---------------------------------------------------------------------------------------


def test_ladder_goes_from_the_weakest_to_the_strongest() -> None:
    traces = [tb.predict(tb.Sequence([launch(n), launch(3)]), TWO) for n in (1, 2, 3)]
    scores = [tb.verify(traces, TWO, name) for name in ("ampere", "first_fit", "round_robin")]
    ax = tb.show.ladder(scores)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["first_fit", "ampere", "round_robin"]  # the last two are equal
    by_name = {score.policy: score for score in scores}
    shares = [
        100 * getattr(by_name[name], level) / 6
        for name in names
        for level in ("occupancy", "exact")
    ]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(shares)
    assert texts(ax)[-1] == "6 launches of 3 sequences."
    with pytest.raises(ValueError, match="ladder: scores: none are given"):
        tb.show.ladder([])


# -- resources ------------------------------------------------------------------------------------


def drawn(ax: Any, colour: str, row: int) -> list[tuple[float, float]]:
    """Where boxes of a colour begin and end, in a row of the picture counted from 0."""
    rows = sorted({patch.get_y() for patch in ax.patches})
    return [
        (round(patch.get_x(), 6), round(patch.get_x() + patch.get_width(), 6))
        for patch in ax.patches
        if patch.get_y() == rows[row] and colour_of(patch) == colour
    ]


def colour_of(patch: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(patch.get_facecolor())


def test_resources_are_where_the_paper_says_in_case_2_2() -> None:
    from tbsched.views.layout.colours import colours_of

    kernels = [launch(1, warps, 255, name=f"k{warps}") for warps in (1, 4, 3)]
    trace = tb.predict(tb.Sequence(kernels), gpu())
    ax = tb.show.resources(trace, 0)
    first, second, third = colours_of(trace.sequence.launches)
    slot, half = 1 / 12, 0.5
    # The rows: slots, warps of four processing blocks, registers of four, shared memory.
    assert [drawn(ax, first, row) for row in range(1, 5)] == [[(0, round(slot, 6))], [], [], []]
    assert [len(drawn(ax, second, row)) for row in range(1, 5)] == [1, 1, 1, 1]
    assert [drawn(ax, first, row) for row in range(5, 9)] == [[(0, half)], [], [], []]
    assert [drawn(ax, second, row) for row in range(5, 9)] == [[(half, 1)], *[[(0, half)]] * 3]
    assert not [row for row in range(10) if drawn(ax, third, row)]
    assert any("1 block of k3 waits: too few registers in the" in text for text in texts(ax))
    assert "16,384 of 16,384" in texts(ax)
    # Figure 5: the three warps that wait would begin at processing block 2, as one was skipped.
    marked = [text.get_text() for text in ax.texts if "\u25b8 " in text.get_text()]
    assert marked == ["\u25b8 processing block 2"]


def test_resources_have_the_gaps_of_shared_memory_and_what_the_runtime_keeps() -> None:
    from tbsched.views.layout.colours import colours_of

    asks = [launch(1, shared_memory=size * KB - RESERVE, carveout=100) for size in (8, 16, 4)]
    trace = tb.predict(tb.Sequence([*asks, *released(1)]), gpu(base="h200"))
    ax = tb.show.resources(trace, 0)
    first, _, third = colours_of(trace.sequence.launches)
    shares = [round(size / 228, 6) for size in (0, 1, 8, 24, 25, 28)]
    assert drawn(ax, first, 9) == [(shares[0], shares[1]), (shares[1], shares[2])]
    assert drawn(ax, third, 9) == [(shares[3], shares[4]), (shares[4], shares[5])]
    assert any("216 KB free in 2 pieces, the largest 200 KB" in text for text in texts(ax))
    before = tb.show.resources(trace, 0, at=2)
    assert not any("free in" in text for text in texts(before))
    with pytest.raises(ValueError, match=r"resources\.at: 5 is outside 0\.\.4"):
        tb.show.resources(trace, 0, at=5)
    with pytest.raises(ValueError, match=r"resources\.sm: 1 is outside 0\.\.0"):
        tb.show.resources(trace, 1)


def test_resources_of_pooled_memory_and_of_an_idle_sm() -> None:
    trace = tb.predict(tb.Sequence([launch(1, 2, 32, shared_memory=KB)]), TWO, "most_room")
    busy, idle = (tb.show.resources(trace, sm) for sm in (0, 1))
    assert any(text.startswith("Shared memory") for text in texts(busy))
    assert "0 of 16" in texts(idle)


@pytest.mark.parametrize("at", [-1, -1e-9, 1.1e9, float("nan"), float("inf")])
def test_a_map_is_of_no_time_before_the_program(at: float) -> None:
    trace = tb.predict(tb.Sequence([launch(8, duration=1e-3)]), gpu())
    with pytest.raises(ValueError, match=r"sm_map\.at: \S+ is outside 0\.\.1e9 seconds"):
        tb.show.sm_map(trace, at=at)
    with pytest.raises(ValueError, match=r"\.at: \S+ is outside 0\.\.1e9 seconds"):
        tb.show.resources(trace, 0, at=at)
