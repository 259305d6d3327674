"""Limits of a makespan: never crossed, and exact where the page says so."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import ROOT, examples, gpu, launch
from tbsched.advice.crowding import Durations, max_full_ns, min_span_ns
from tbsched.program.sequence import with_durations
from tbsched.strategies import programs
from tbsched.traces.files import load_traces

H200 = tb.device("h200")
US = 1e-6


def small(sms: int = 2, queues: int = 8, **more: Any) -> tb.DeviceSpec:
    """An H200 with few SMs, for which few blocks compete."""
    spec = gpu(sms=sms, base="h200", hardware_queues=queues, **more)
    return dataclasses.replace(spec, cluster_blocks_per_sm=1)


def timed(blocks: int = 1, warps: int = 32, us: float = 100, **more: Any) -> tb.Launch:
    return launch(blocks, warps, carveout=100, duration=us * US, **more)


def bounds(*events: Any, spec: tb.DeviceSpec | str = H200, **more: Any) -> tb.MakespanBounds:
    return tb.makespan_bounds(tb.Sequence(events), spec, **{"predictions": 32, **more})


# -- never crossed ---------------------------------------------------------------------------------


def has_limits(program: tb.Sequence, spec: tb.DeviceSpec) -> bool:
    return (
        0 < len(program.launches) <= 16
        and not any(isinstance(e, tb.GraphLaunch) and e.graph.transfers for e in program)
        and not (program.transfers and any(getattr(e, "host", 0) for e in program))
        and not any(
            one.programmatic or one.memory_wait is not None or one.local_memory > 1024
            for one in program.launches
        )
        and (2 * len(program.launches) <= spec.resident_grids or program.events == program.launches)
    )


def by_one_thread(program: tb.Sequence) -> tb.Sequence:
    """The program with all calls by one host thread: others have no limits beside copies."""
    return tb.Sequence(
        dataclasses.replace(event, host=0) if hasattr(event, "host") else event for event in program
    )


def without_host_work(program: tb.Sequence) -> tb.Sequence:
    """The program without host functions, host calls and values: with them no limits are known."""
    kinds = (tb.HostFunction, tb.HostCall, tb.WriteValue, tb.WaitValue)
    return tb.Sequence(event for event in program if not isinstance(event, kinds))


@st.composite
def cases(draw: st.DrawFn) -> tuple[tb.DeviceSpec, tb.Sequence, list[Any], float]:
    spec = small(
        draw(st.integers(1, 4)),
        draw(st.sampled_from([1, 2, 8])),
        resident_grids=draw(st.sampled_from([128, 128, 2])),
        launch_order=draw(st.sampled_from(["leftover", "leftover", "fifo", "pass_by", "one_line"])),
    )
    drawn = programs(spec).map(without_host_work)
    drawn = drawn.map(by_one_thread) if draw(st.booleans()) else drawn
    program = draw(drawn.filter(lambda seq: has_limits(seq, spec)))
    width = draw(st.sampled_from([0.0, 0.1, 0.9]))
    intervals: list[Any] = []
    for one in program.launches:
        known = width == 0 or not isinstance(one.duration, float) or draw(st.integers(0, 3)) == 0
        intervals.append(None if known else ((1 - width) * one.duration, one.duration))
    return spec, program, intervals, draw(st.sampled_from([0.0, 2e-6]))


# Most programs that are drawn have no limits, since they have copies or dependent launches.
@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(cases())
def test_no_prediction_is_outside(
    case: tuple[tb.DeviceSpec, tb.Sequence, list[Any], float],
) -> None:
    """Durations are drawn block by block, from each latent state."""
    spec, program, intervals, interval = case
    found = tb.makespan_bounds(program, spec, intervals, launch_interval=interval, predictions=12)
    assert found.least <= found.seen[0] <= found.seen[1] <= found.greatest
    assert len(found.ends) == len(found.seen_ends) == len(program.launches)
    for (least, greatest), (first, last) in zip(found.ends, found.seen_ends, strict=True):
        assert least <= first <= last <= greatest
    assert max(greatest for _, greatest in found.ends) == found.greatest


@pytest.mark.parametrize("name", ["h200", "h100"])
def test_makespans_of_gpus_are_within(name: str) -> None:
    """Twelve programs of each GPU; their launches are named after the intervals, in us."""
    path = ROOT / "tests" / "traces" / "hierarchy" / f"timed-{name}.jsonl.xz"
    late = 0.7 * US  # at most, of a block: traces h200-timed
    traces = [trace for trace in load_traces(path) if trace.extra["about"] == "bounds"]
    assert len(traces) == 12
    missed = []
    for trace in traces:
        names = [str(kernel.name) for kernel in trace.sequence.launches]
        limits = [tuple(float(part) * US for part in name.split("-")) for name in names]
        found = tb.makespan_bounds(
            trace.sequence, H200, [(low, high + late) for low, high in limits],
            issue_times=trace.issue_times, predictions=2,
        )  # fmt: skip
        assert found.least < trace.makespan < found.greatest
        begin_ns = int(trace.timeline["start_ns"].min())
        for placement, (least, greatest) in zip(trace, found.ends, strict=True):
            assert placement.end_ns is not None
            end = (int(placement.end_ns.max()) - begin_ns) / 1e9
            missed.append(max(least - end, end - greatest, 0))
    # Launches reach a GPU some us sooner or later than in the model.
    assert len(missed) == 88
    assert sum(by > 0 for by in missed) <= 7
    assert max(missed) < 10 * US


# -- exact -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 263, 264, 265, 528, 529])
def test_one_launch_is_exact_in_any_number_of_rounds(blocks: int) -> None:
    found = bounds(timed(blocks), durations=(50 * US, 100 * US))
    assert found.exact
    rounds = -(-blocks // 264)
    assert found.greatest == pytest.approx(rounds * 100 * US + (rounds - 1) * 0.45 * US)


def test_each_launch_of_a_stream_has_limits_of_its_own() -> None:
    found = bounds(*[timed(264, stream=0)] * 3, durations=(50 * US, 100 * US))
    for number, (least, greatest) in enumerate(found.ends, 1):
        assert least == pytest.approx(number * 50 * US, abs=3 * US * number)
        assert greatest == pytest.approx(number * 100 * US, abs=3 * US * number)
    assert found.ends == found.seen_ends


def test_a_launch_that_nothing_holds_up_ends_before_others() -> None:
    """The GPU has room for the first beside all of the second, which takes ten times as long."""
    short, long = timed(1, warps=1, us=10, stream=0), timed(132, warps=8, us=100, stream=1)
    (first, second) = bounds(short, long, durations=[(8 * US, 10 * US), (90 * US, 100 * US)]).ends
    assert first[1] < 20 * US < 90 * US <= second[0]


def test_a_more_urgent_launch_waits_for_running_blocks_alone() -> None:
    """Eight launches take turns, 1 ms each; another one comes when the first of them run."""

    def latest(priority: int) -> float:
        background = [timed(2, us=1000, stream=k) for k in range(8)]
        found = bounds(
            *background, timed(2, us=100, stream=8, priority=priority), spec=small(2),
            durations=[(50 * US, 1000 * US)] * 8 + [None], issue_times=[0.0] * 8 + [100 * US],
        )  # fmt: skip
        assert found.seen_ends[-1][1] <= found.ends[-1][1]
        return found.ends[-1][1]

    assert latest(-1) == pytest.approx((100 + 1000 + 100) * US, abs=50 * US)
    assert latest(0) > 4000 * US


def test_wide_limits_say_that_the_largest_carveout_makes_them_tighter() -> None:
    """Six launches without one: 12 ms at most, where 3 ms are seen; with it, 2 ms."""

    def program(carveout: int | None) -> list[tb.Launch]:
        return [
            launch(264, 8, shared_memory=kb * 1024, carveout=carveout, stream=k, duration=1e-3)
            for k, kb in enumerate((0, 4, 1, 9, 8, 6))
        ]

    interval = (0.5e-3, 1e-3)
    wide, common, tight = (bounds(*program(each), durations=interval) for each in (None, 17, 100))
    assert wide.greatest > 2 * tight.greatest
    for found in (wide, common):
        carveout, order = found.widened_by
        assert "6 launches without carveout=100" in carveout
        assert (order,) == tight.widened_by
    assert "any order" in tight.widened_by[0]
    alone = bounds(launch(264, 8, stream=0, duration=1e-3), durations=interval)
    assert alone.widened_by == ()


def test_launches_of_one_stream_are_exact() -> None:
    kernels = [timed(300, stream=0), timed(20, stream=0), timed(600, warps=8, stream=0)]
    assert bounds(*kernels, durations=[(1e-4, 2e-4), (0, 1e-3), None]).exact


def test_launches_that_fit_beside_each_other_are_as_long_as_the_longest() -> None:
    kernels = [timed(132, warps=8, us=us, stream=us) for us in (10, 20, 30)]
    found = bounds(*kernels)
    assert found.greatest - found.least < 4 * US
    assert found.seen[0] == found.seen[1]


def test_an_event_orders_streams() -> None:
    """Each fills the GPU, so that without the event either may come first."""
    a, b = timed(264, stream=0), timed(264, stream=1)
    either = (50 * US, 100 * US)
    assert bounds(a, tb.RecordEvent(0, 0), tb.WaitEvent(0, 1), b, durations=either).exact
    assert not bounds(a, b, durations=either).exact


def test_one_of_a_few_queues_may_hold_up_another_stream() -> None:
    kernels = [timed(us=us, stream=k) for k, us in ((0, 500), (0, 1), (1, 400))]
    wide, narrow = (bounds(*kernels, spec=small(8, queues)) for queues in (1, 2))
    assert wide.seen[1] > narrow.greatest
    assert wide.greatest >= wide.seen[1]


def test_known_durations_are_exact_over_latent_states_and_ties() -> None:
    """Two streams wait for one event: one fills the GPU, and the other takes long."""
    first = [timed(264, stream=0), tb.RecordEvent(0, 0)]
    half, full = timed(132, us=900, stream=1), timed(264, stream=2)
    others = [tb.WaitEvent(0, 1), half, tb.WaitEvent(0, 2), full]
    found = bounds(*first, *others, predictions=64)
    assert found.exact
    assert found.predictions == 32 * 2
    assert found.greatest - found.least > 99 * US
    assert found.least == tb.predict(tb.Sequence([*first, *others]), H200).makespan
    wider = bounds(*first, *others, predictions=63)
    assert wider.least <= found.least
    assert wider.greatest >= found.greatest


@pytest.mark.parametrize("own_us", [1, 10, 100])
def test_intervals_without_width_take_the_place_of_the_own_durations(own_us: float) -> None:
    """In streams, in a graph, block by block, for all launches and for one."""
    graph = tb.Graph([timed(264, us=own_us), timed(3, us=own_us)])
    events = [
        timed(300, us=own_us, stream=0), timed(7, us=own_us, stream=1), tb.GraphLaunch(graph, 1),
        launch(2, 32, carveout=100, stream=0, duration=(own_us * US, 2 * own_us * US)),
    ]  # fmt: skip
    known = tb.Sequence(events)
    times = [20 * US, 30 * US, 40 * US, 50 * US, 5 * US]
    meant = with_durations(
        known,
        [replace(one, duration=at) for one, at in zip(known.launches, times, strict=True)],
    )
    same = [(at, at) for at in times]
    assert tb.makespan_bounds(known, H200, same) == tb.makespan_bounds(meant, H200)
    assert tb.makespan_bounds(meant, H200).exact
    one = bounds(timed(8, us=own_us, stream=0), durations=(7 * US, 7 * US))
    assert (one.least, one.greatest, one.exact) == (7 * US, 7 * US, True)


# -- copies and memsets ----------------------------------------------------------------------------

MB = 1 << 20


def copies_and_kernels(random: Random) -> tb.Sequence:
    """A program of both, in up to seven streams, with events and calls that wait."""
    streams: list[Any] = random.choice([[0], [0, 1], [0, 1, None], range(7), [0, 1, "legacy"]])
    events: list[Any] = [tb.RecordEvent(0, 0)]
    for _ in range(random.randint(2, 11)):
        stream = random.choice(streams)
        seconds = random.choice([None, None, None, 3e-5])
        named = 0 if stream is None else stream
        events += random.choice([
            [launch(
                random.choice([1, 5, 20]), random.choice([1, 8, 32]), stream=stream,
                carveout=random.choice([100, None]), duration=random.choice([0, 5e-6, 2e-4]),
            )],
            [tb.Copy(
                random.choice([64, 5000, 300_000, 8 * MB]), random.choice(["h2d", "d2h"]), seconds,
                stream=stream, pinned=random.random() < 0.7, blocking=random.random() < 0.2,
            )],
            [tb.Copy(random.choice([64, 300_000, 8 * MB]), "d2d", seconds, stream=stream)],
            [tb.Memset(random.choice([64, 300_000, 8 * MB]), seconds, stream=stream)],
            [tb.RecordEvent(0, named)],
            [tb.WaitEvent(0, named)],
            [tb.Synchronize(named)],
        ])  # fmt: skip
    return tb.Sequence([*events, timed(2, stream=0, us=10)])


@settings(deadline=None, max_examples=examples(600), derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_no_prediction_with_copies_is_outside(seed: int) -> None:
    """Durations, orders of launches that tie and latent states are drawn; so is the device."""
    random = Random(seed)
    spec = small(
        random.choice([1, 2, 4]),
        random.choice([1, 2, 8]),
        resident_grids=random.choice([128, 2]),
        launch_order=random.choice(["leftover", "fifo", "pass_by", "one_line"]),
        copy_channels=random.choice([1, 4]),
        copy_engine_count=random.choice([1, 2]),
    )
    program = copies_and_kernels(random)
    part = random.choice([0.1, 1])
    intervals: list[Any] = [(part * float(one.duration), one.duration) for one in program.launches]
    interval = random.choice([0.0, 2e-6])
    found = tb.makespan_bounds(program, spec, intervals, launch_interval=interval, predictions=6)
    assert found.least <= found.seen[0] <= found.seen[1] <= found.greatest
    for (least, greatest), (first, last) in zip(found.ends, found.seen_ends, strict=True):
        assert least <= first <= last <= greatest


@pytest.mark.parametrize("name", ["h200", "h100"])
def test_makespans_of_gpus_with_copies_are_within(name: str) -> None:
    """30 of 150 random programs of each GPU, whose blocks run as long as they did there."""
    path = ROOT / "tests" / "traces" / "ways-holdout" / f"transfers-{name}.jsonl.xz"
    within = []
    for trace in list(load_traces(path))[::5]:
        ran = [(p.end_ns - p.start_ns) / 1e9 for p in trace]  # type: ignore[operator]
        found = tb.makespan_bounds(
            trace.sequence, name, [(float(each.min()), float(each.max())) for each in ran],
            issue_times=trace.issue_times, predictions=1,
        )  # fmt: skip
        within.append(found.least <= trace.makespan <= found.greatest)
    assert len(within) == 30
    assert sum(within) >= 29


def test_copies_of_one_stream_wait_for_nobody() -> None:
    """16 MB in each direction, and two kernels: the limits are 80 us apart."""
    kernel = timed(132, 16, stream=0)
    up, down = tb.Copy(16 * MB, "h2d", stream=0), tb.Copy(16 * MB, "d2h", stream=0)
    found = bounds(up, kernel, down, kernel)
    assert 450 * US < found.least <= found.seen[0] <= found.greatest < 600 * US


def test_copies_of_several_streams_wait_for_their_engine() -> None:
    """Each of three kernels waits for a copy of 300 us, and for those of the others."""
    events = [e for k in range(3) for e in (tb.Copy(16 * MB, "h2d", stream=k), timed(stream=k))]
    found = bounds(*events)
    assert found.seen[1] > 700 * US
    assert found.greatest < 900 * US
    assert found.widened_by == (
        "copies of several streams: each waits for all others of its engine",
    )
    # What the others copy back after their kernels holds up no kernel.
    back = [tb.Copy(16 * MB, "d2h", stream=k) for k in range(3)]
    assert bounds(*events, *back).greatest < 1.2 * found.greatest


def test_a_copy_that_waits_holds_up_others_in_its_channel() -> None:
    """A copy waits for a kernel of 5 ms; with one channel, one of another stream waits, too."""
    before = [timed(us=5000, stream=0), tb.Copy(MB, "d2h", stream=0), tb.Copy(MB, "d2h", stream=1)]
    several, one = (
        bounds(*before, timed(stream=1), spec=small(8, copy_channels=channels)).ends[1]
        for channels in (4, 1)
    )
    assert several[1] < 500 * US
    assert one[1] > 5000 * US
    seen = bounds(*before, timed(stream=1), spec=small(8, copy_channels=1)).seen_ends[1]
    assert 5000 * US < seen[1] <= one[1]


def test_a_memset_that_is_a_kernel_takes_the_room_of_another() -> None:
    """It fills the GPU before a launch of another stream comes."""
    memset, kernel = tb.Memset(256 * MB, stream=0), timed(264, stream=1)
    first = timed(1, 1, us=1, stream=1)
    found = bounds(first, memset, kernel, spec=small(8))
    alone = bounds(first, kernel, spec=small(8))
    assert found.seen[1] > alone.seen[1] + 100 * US
    assert found.seen[1] <= found.greatest
    assert "a block of them counts as a full SM" in " ".join(found.widened_by)


def test_copies_after_all_launches_change_no_limit() -> None:
    kernels = [timed(264, stream=0), timed(264, stream=0)]
    plain = bounds(*kernels, durations=(50 * US, 100 * US))
    assert bounds(*kernels, tb.Copy(MB, "d2h", stream=0), durations=(50 * US, 100 * US)) == plain


# -- an anomaly ------------------------------------------------------------------------------------


def test_shorter_blocks_may_make_a_program_longer_and_the_limits_know() -> None:
    """The page on bounds has this program, and the numbers."""

    def kernels(us: float) -> list[tb.Launch]:
        return [
            tb.Launch(132, 1024, 32, carveout=100, stream=0, duration=us * US),
            tb.Launch(132, 1024, 32, carveout=100, stream=1, duration=100 * US),
            tb.Launch(264, 1024, 32, carveout=100, stream=0, duration=100 * US),
            tb.Launch(132, 1024, 32, carveout=100, stream=1, duration=400 * US),
        ]

    spans = [tb.predict(tb.Sequence(kernels(us)), H200).makespan for us in (90, 110)]
    assert spans == [pytest.approx(592.35 * US), pytest.approx(502.08 * US)]
    found = bounds(*kernels(110), durations=[(90 * US, 110 * US), None, None, None])
    assert found.least <= spans[1] < spans[0] <= found.greatest


# -- the arguments ---------------------------------------------------------------------------------


def durations(*values: int) -> Durations:
    return Durations.of(np.array(values), len(values), 0)


@pytest.mark.parametrize(
    ("values", "at_once", "least"),
    [((5,), 3, 5), ((5, 5, 5), 3, 5), ((5, 5, 5, 5), 3, 10), ((1, 9, 9), 2, 10), ((9, 1, 1), 2, 9)],
)
def test_places_that_blocks_share(values: tuple[int, ...], at_once: int, least: int) -> None:
    assert min_span_ns(durations(*values), at_once) == least


def test_few_blocks_never_fill_sms_and_many_do_so_for_rounds() -> None:
    def full(*values: int, spared: float = 0.0) -> int:
        return max_full_ns([durations(*values)], np.array([0.5]), 1.0, spared)

    assert full(8) == 0
    assert full(8, 8) == 8
    assert full(8, 8, spared=0.5) == 0
    assert full(8, 3) == 3
    assert full(8, 8, 8) == 8
    assert full(8, 8, 8, 8) == 16


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("durations", "message"),
    [
        ((2e-4, 1e-4), r"durations\[0\]: 0.0002 is more than 0.0001"),
        ([None, None], "durations: 2 intervals for 1 launches"),
        ([(1e-4, 2e-4, 3e-4)], r"durations\[0\]: a pair of seconds is needed"),
        ([1e-4], r"durations\[0\]: a pair of seconds is needed"),
        ((-1.0, 1.0), r"durations\[0\]: -1.0 is outside 0..1e9 seconds"),
        (3, "durations: a list is needed, got 3"),
    ],
)
def test_durations_that_are_no_intervals_are_named(durations: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        bounds(timed(), durations=durations)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (timed(stream=0, programmatic=True), "Launch.programmatic: True: no limits are known"),
        (timed(stream=0, memory_wait=1e-6), "Launch.memory_wait: 1e-06: no limits are known"),
        (timed(local_memory=2048), "Launch.local_memory: 2048 is more than 1024"),
        (launch(1, 1), "launches with durations are needed"),
    ],
)
def test_programs_without_limits_are_refused(kernel: tb.Launch, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bounds(kernel)


def test_graphs_with_more_grids_than_can_be_resident_are_refused() -> None:
    graph = tb.Graph([timed(), timed()], [(0, 1)]).launch()
    assert bounds(graph, spec=small(resident_grids=4)).exact
    with pytest.raises(ValueError, match=r"2 launches, 2 of them nodes of graphs; .* at most 3"):
        bounds(graph, spec=small(resident_grids=3))


def test_copies_and_memsets_of_which_nothing_is_known_are_refused() -> None:
    graph = tb.Graph([tb.Memset(64), launch(1, 1, duration=1e-6)], [(0, 1)])
    with pytest.raises(ValueError, match=r"Memset\(64\) is a node of a graph: no limits are known"):
        bounds(graph.launch())
    with pytest.raises(ValueError, match=r"host=3\) is called by host thread 3: no limits are kno"):
        bounds(tb.Copy(64, "h2d"), timed(host=3))


@settings(deadline=None, max_examples=examples(800), derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_predictions_of_several_host_threads_are_within(seed: int) -> None:
    random = Random(seed)
    spec = dataclasses.replace(
        tb.device("rtx3090"),
        resident_grids=random.choice([1, 2, 3]),
        hardware_queues=random.choice([1, 2, 8]),
    )
    interval = random.choice([0.0, 1e-6, 7e-6])
    kernels: list[tb.Event] = [
        tb.Launch(
            random.choice([1, 50, 200]), random.choice([64, 1024]), 16,
            stream=random.choice([None, 0, 1, 2]), host=random.choice([0, 0, 1, 2]),
            duration=random.choice([1e-5, 2e-5, 5e-5]),
        )
        for _ in range(random.randint(2, 7))
    ]  # fmt: skip
    at = random.randrange(len(kernels))
    program = tb.Sequence(
        [*kernels[:at], tb.Synchronize(host=random.choice([0, 1])), *kernels[at:]]
    )
    found = tb.makespan_bounds(program, spec, launch_interval=interval)
    predicted = tb.predict(program, spec, launch_interval=interval).makespan
    assert found.least <= predicted <= found.greatest


def test_limits_of_many_launches_are_shown_in_a_line() -> None:
    program = tb.Sequence([tb.Launch(1, 32, 16, stream=0, duration=1e-4)] * 100)
    found = tb.makespan_bounds(program, "xavier", predictions=1)
    assert len(found.ends) == 100
    assert str(found).startswith("MakespanBounds(least=0.01, greatest=0.01, seen=(0.01, 0.01), ")
    assert len(str(found)) < 400
