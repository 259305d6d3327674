"""Durations of blocks out of the times of whole kernels, of which the model knows the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
from profiled import profile_of, profiled
from tbsched.prediction.fitting.effort import THOROUGH
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.fitting.spans import Spans
from tbsched.program.program import Program
from tbsched.program.sequence import with_launches
from tbsched.strategies import programs

US = 1e-6


def durations(program: Program) -> list[float]:
    """Returns how long the longest block of each launch runs."""
    rows = [launch.block_durations() for launch in program.sequence.launches]
    return [float(own.max()) for own in rows if own is not None]


def kernel(blocks: int, us: float, stream: int | None = 0, **rest: object) -> tb.Launch:
    return tb.Launch(blocks, 256, 32, stream=stream, duration=us * US, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize("blocks", [1, 132, 1056, 1057, 5000])
def test_waves_are_counted_once(blocks: int) -> None:
    found = tb.fit_durations(profiled(tb.Sequence([kernel(blocks, 20)]), "h200"), "h200")
    assert durations(found) == pytest.approx([20 * US], rel=1e-3)
    assert found.fitted[0] > 0.9


def test_neighbours_on_the_same_sms_count() -> None:
    # The second one gets the SMs that the first one leaves it, and then all of them.
    sequence = tb.Sequence([kernel(1000, 50, 0), kernel(800, 30, 1), kernel(100, 7, 2)])
    found = tb.fit_durations(profiled(sequence, "h200"), "h200")
    assert durations(found) == pytest.approx([50 * US, 30 * US, 7 * US], rel=0.01)


def test_a_launch_that_waits_for_others_says_little_about_its_own_blocks() -> None:
    # Its last block starts when those of the other kernel end.
    more = replace(kernel(1056, 5, 1), priority=-1)
    sequence = tb.Sequence([more, tb.Synchronize(), kernel(1050, 500, 0), more])
    found = tb.fit_durations(profiled(sequence, "h200"), "h200")
    assert found.fitted[0] > 0.9
    assert found.fitted[2] < 0.1


def test_blocks_that_end_one_after_the_other_let_the_next_kernel_start_before_the_last() -> None:
    tail = tb.Drawn("uniform", 80 * US, 20 * US, seed=3)
    sequence = tb.Sequence(
        [replace(kernel(1056, 1, 0), duration=tail), kernel(1056, 50, 1), kernel(8, 5, 0)]
    )
    program = profiled(sequence, "h200")
    found = tb.fit_durations(program, "h200").sequence
    spread = found.launches[0].duration
    assert isinstance(spread, tb.Drawn)
    assert spread.mean == pytest.approx(80 * US, rel=0.1)
    assert spread.spread == pytest.approx(20 * US, rel=0.2)
    assert tb.predict(found, "h200", host=program.host).concurrent(0, 1)


def test_launches_that_wait_for_the_same_kernel_go_on_in_the_order_of_the_profile() -> None:
    fork = [kernel(500, 100, 0), tb.RecordEvent(0, 0), *(tb.WaitEvent(0, k) for k in range(1, 5))]
    order = {1: 3.0, 2: 1.0, 3: None, 4: 2.0}  # in which they go on, by their delays
    forked = [
        replace(kernel(1056, 50 + k, k), delay=None if us is None else us * US)
        for k, us in order.items()
    ]
    sequence = tb.Sequence([*fork, *forked])
    spec = replace(tb.device("h200"), host_watch_ns=0)  # as of kernels that write to the GPU alone
    program = profiled(sequence, spec)
    found = tb.fit_durations(program, spec)
    again = tb.predict(found.sequence, spec, host=found.host)
    start = [int(p.start_ns.min()) for p in again if p.start_ns is not None]
    assert start == pytest.approx(program.measured["start_ns"].tolist(), abs=1000)
    undone = [replace(launch, delay=None) for launch in found.sequence.launches]
    other = tb.predict(with_launches(found.sequence, undone), spec, host=found.host)
    assert np.argsort(start).tolist() != np.argsort([p.start_ns.min() for p in other]).tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("distribution", ["last", "falling"])
def test_kernels_with_a_long_tail_and_with_none_let_the_next_one_start_when_it_did(
    distribution: str,
) -> None:
    uneven = tb.Drawn(distribution, 40 * US, 15 * US)
    sequence = tb.Sequence([replace(kernel(2112, 1, k % 2), duration=uneven) for k in range(4)])
    program = profiled(sequence, "h200")
    found = tb.fit_durations(program, "h200")
    again = tb.predict(found.sequence, "h200", host=found.host)
    start = [int(p.start_ns.min()) for p in again if p.start_ns is not None]
    assert start == pytest.approx(program.measured["start_ns"].tolist(), abs=2000)


def test_kernels_of_no_length_and_very_short_ones() -> None:
    program = profiled(tb.Sequence([kernel(1, 0.3), kernel(1, 0), kernel(4000, 0.1)]), "h200")
    found = tb.fit_durations(program, "h200")
    assert durations(found)[:2] == pytest.approx([0.3 * US, 0])
    assert found.fitted[1] == 0


def test_millions_of_blocks_become_fewer_and_longer_ones() -> None:
    sequence = tb.Sequence([kernel(4_000_000, 1) for _ in range(3)])
    program = profiled(sequence, "h200")
    found = tb.fit_durations(program, "h200")
    assert sum(launch.blocks for launch in found.sequence.launches) < THOROUGH.program
    assert "3 launches of very many blocks" in found.assumed[0]
    makespan = tb.predict(found.sequence, "h200", host=found.host).makespan
    assert makespan == pytest.approx(tb.predict(sequence, "h200").makespan, rel=0.01)


def test_urgent_kernels_start_as_blocks_of_a_long_one_end() -> None:
    # No two blocks of the long kernel end together, so an SM takes two blocks of the urgent ones.
    low = tb.Launch(1000, 256, 202, stream=0, duration=tb.Drawn("uniform", 100 * US, 10 * US, 1))
    urgent = [
        tb.Launch(blocks, 128, 255, stream=1, priority=-1, duration=us * US)
        for blocks, us in ((128, 60), (64, 5), (256, 20), (128, 70))
    ]
    sequence, gaps = tb.Sequence([low, *urgent, low, *urgent]), [US] * 10
    trace = tb.predict(sequence, "h200", host=gaps)
    found = tb.fit_durations(profile_of(trace, gaps), "h200")
    again = tb.predict(found.sequence, "h200", host=found.host)
    assert again.makespan == pytest.approx(trace.makespan, rel=0.005)


def test_kernels_that_run_together_for_long_are_told_from_those_that_hardly_do() -> None:
    spans = Spans.of(np.array([5.0, 15.0, 23.9, 114.8]), np.array([25.0, 35.0, 115.0, 120.0]))
    assert spans.together().tolist() == [0 * 4 + 1, 0 * 4 + 2, 1 * 4 + 2]
    more = np.array([0.0, 20.0, 20.0, 20.0])
    later = Spans.of(spans.start + more, spans.end + more)
    assert later.together().tolist() == [1 * 4 + 2]
    # Two of three pairs; starts and ends 30 ns off at the mean, and the end 20, of 115.
    assert spans.distance(later) == pytest.approx(2 / 3 + (30 + 2 * 20) / 115)


def test_what_a_profiler_adds_to_each_kernel_shows_in_a_stream() -> None:
    sequence = tb.Sequence([kernel(132, 10 + k) for k in range(12)])
    gaps = [US] * 12
    program = profile_of(tb.predict(sequence, "h200", host=gaps), gaps, longer_ns=800)
    found = tb.fit_durations(program, "h200")
    assert durations(found) == pytest.approx([(10 + k) * US for k in range(12)], rel=1e-3)
    assert found.kernel_overhead == pytest.approx(0.8 * US)
    assert any("0.80 us longer" in line for line in found.assumed)


def test_a_launch_is_issued_when_its_call_returned_though_a_profiler_makes_it_longer() -> None:
    sequence = tb.Sequence([kernel(8, 5, k % 3) for k in range(20)])
    trace = tb.predict(sequence, "h200", host=2e-5)
    program = profile_of(trace, [2e-5] * 20, call_ns=6000)
    assert program.host[0] == pytest.approx(1.4e-5)
    found = tb.fit_durations(program, "h200")
    again = tb.predict(found.sequence, "h200", host=found.host)
    assert again.issue_times is not None
    assert trace.issue_times is not None
    assert np.diff(again.issue_times) == pytest.approx(np.diff(trace.issue_times), abs=1e-7)
    assert any("6.0 us more between calls" in line for line in found.assumed)


def test_the_wait_for_memory_is_not_part_of_the_duration() -> None:
    first = kernel(4, 40, trigger=1e-5)
    second = kernel(4, 12, programmatic=True, memory_wait=2e-6)
    program = profiled(tb.Sequence([first, second]), "h200")
    assert durations(tb.fit_durations(program, "h200"))[1] == pytest.approx(12 * US, rel=0.05)


def test_all_launches_of_a_graph_have_the_same_durations() -> None:
    graph = tb.Graph([kernel(8, 20, None), kernel(8, 10, None)], edges=[(0, 1)])
    sequence = tb.Sequence([graph.launch(stream=k % 2) for k in range(3)])
    found = tb.fit_durations(profiled(sequence, "h200"), "h200").sequence
    first, *others = [event for event in found if isinstance(event, tb.GraphLaunch)]
    assert all(other.graph == first.graph for other in others)


def test_an_empty_program_stays_as_it_is() -> None:
    program = profiled(tb.Sequence([kernel(1, 1)]), "h200")
    empty = Program(tb.Sequence([]), (), program.measured[:0], program.transfers)
    assert tb.fit_durations(empty, "h200") is empty


def test_what_cannot_run_on_the_device_is_refused() -> None:
    program = profiled(tb.Sequence([tb.Launch(1, 32, 16, 200_000, duration=US)]), "h200")
    with pytest.raises(ValueError, match="launch 0: shared_memory: 200000 is more than rtx3090"):
        tb.fit_durations(program, "rtx3090")
    with pytest.raises(TypeError, match=r"fit_durations\.program: a Program is needed"):
        tb.fit_durations(program.sequence, "h200")  # type: ignore[arg-type]


COPY_NS = 2000  # by so much the kernel of a copy may begin before its bytes move, or end after


def same_nodes(sequence: tb.Sequence) -> list[set[int]]:
    """Returns, for each launch, the launches that are the same node of the same graph."""
    nodes: dict[object, set[int]] = {}
    keys: list[object] = []
    for event in sequence:
        for place in range(len(event.launches)):
            graph = event.graph if isinstance(event, tb.GraphLaunch) else None
            keys.append((graph, place) if graph else len(keys))
            nodes.setdefault(keys[-1], set()).add(len(keys) - 1)
    return [nodes[key] for key in keys]


@settings(max_examples=examples(60), deadline=None)
@given(programs("h200"), st.floats(0, 2e-5))
def test_times_of_random_programs_come_back(sequence: tb.Sequence, host: float) -> None:
    rows = [launch.block_durations() for launch in sequence.launches]
    means = [float(own.mean()) for own in rows if own is not None]
    launches = zip(sequence.launches, means, strict=True)
    truth = with_launches(sequence, [replace(x, duration=own) for x, own in launches])
    gaps = [host] * len(truth)
    trace = tb.predict(truth, "h200", host=gaps)
    profile = profile_of(trace, gaps)
    found = tb.fit_durations(profile, "h200")
    if not len(trace):
        return
    start = [int(p.start_ns.min()) for p in trace if p.start_ns is not None]
    end = [int(p.end_ns.max()) for p in trace if p.end_ns is not None]
    ran = [*zip(start, end, range(len(trace)), strict=True)]
    # Copies and memsets may be kernels, too.
    moved = [] if trace.transfer_ns is None else trace.transfer_ns.tolist()
    ran = sorted([*ran, *((begin - COPY_NS, end + COPY_NS, -1) for begin, end in moved)])
    until = np.maximum.accumulate([0, *(end for _, end, _ in ran)])
    alone = {
        k
        for place, (begin, end, k) in enumerate(ran)
        if until[place] <= begin and (place == len(ran) - 1 or end <= ran[place + 1][0]) and k >= 0
    }
    for k, same in enumerate(same_nodes(profile.sequence)):
        # All launches of a graph have the same durations, also those that ran beside others.
        is_known = same <= alone and len({means[j] for j in same}) == 1
        if is_known and truth.launches[k].memory_wait is None:
            # The fit takes a kernel time within 20 ns as the measured one.
            assert durations(found)[k] * 1e9 == pytest.approx(1e9 * means[k], rel=0.01, abs=20)


@pytest.mark.parametrize("spread", [0.0, 20 * US])
def test_merged_blocks_end_when_single_ones_do(spread: float) -> None:
    """Beside a kernel that leaves them room only later, and before one that follows."""
    uneven = tb.Drawn("uniform", 20 * US, spread)
    launches = [
        kernel(600, 400, 0),
        tb.Launch(150_000, 256, 32, stream=1, duration=uneven),
        kernel(2000, 30, 1),
    ]
    sequence = tb.Sequence(launches)
    quick = merged(sequence, tb.device("h200"))
    assert sum(launch.blocks for launch in quick.launches) < 20_000
    whole, found = (tb.predict(each, "h200") for each in (sequence, quick))
    for one, other in zip(whole, found, strict=True):
        for key in ("start_ns", "end_ns"):
            a, b = getattr(one, key), getattr(other, key)
            assert abs(int(a.max()) - int(b.max())) <= 200


def test_blocks_that_a_more_urgent_launch_may_interrupt_stay_single() -> None:
    uneven = tb.Drawn("uniform", 20 * US, 5 * US)
    long = tb.Launch(150_000, 256, 32, stream=1, duration=uneven)
    sequence = tb.Sequence([long, kernel(100, 20, 0, priority=-1)])
    assert merged(sequence, tb.device("h200")) == sequence
