"""Copies and memsets in streams, rule by rule; each case is small, and most ran on an H200, too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
from tbsched.traces.timeline import span_of

SPEC = tb.device("h200")
MB = 1 << 20
MB_US = MB / SPEC.host_copy_bandwidth  # of moving it
LONG_US = 400
NO_KERNELS = "-no-copy-kernels"
Transfer = tb.Copy | tb.Memset


def kernel(stream: Any, us: float = 5, blocks: int = 1, threads: int = 64) -> tb.Launch:
    return tb.Launch(blocks, threads, 16, stream=stream, duration=us * 1e-6)


def copy(stream: Any, kind: Any = "h2d", size: int = MB, **fields: Any) -> tb.Copy:
    return tb.Copy(size, kind, stream=stream, **fields)


def starts_us(*events: Any, spec: tb.DeviceSpec = SPEC, **fields: Any) -> list[float]:
    found = tb.predict(tb.Sequence(events), spec, **fields)
    starts = [span_of(k, placement)[0] / 1e3 for k, placement in enumerate(found)]
    return [start - min(starts) for start in starts]


def moved_us(*events: Any, spec: tb.DeviceSpec = SPEC, **fields: Any) -> Any:
    """When copies and memsets moved their bytes."""
    found = tb.predict(tb.Sequence(events), spec, **fields).transfer_ns
    assert found is not None
    return found / 1e3


@pytest.mark.parametrize(
    ("transfer", "waited"),
    [
        (copy(0), 34),  # D-U-1048576: 34 to 37 us from end to start
        (copy(0, "d2h"), 34),
        (copy(0, "d2h", 4096), 10.5),
        (copy(0, "h2d", 1024), 3.9),
        (copy(0, "d2d", 64), 3.8),
        (tb.Memset(64, stream=0), 3.4),
        (tb.Memset(MB, stream=0), 4.0),
    ],
    ids=str,
)
def test_a_stream_is_in_order(transfer: Transfer, waited: float) -> None:
    _, after = starts_us(kernel(0, 60), transfer, kernel(0))
    assert after - 60 == pytest.approx(waited, abs=1)


def test_other_streams_run_on() -> None:
    _, other, after = starts_us(copy(0), kernel(1), kernel(2), kernel(0))
    assert other < 1
    assert after > MB_US


@pytest.mark.parametrize("kind", ["h2d", "d2h"])
def test_one_engine_moves_copies_of_a_direction_one_after_the_other(kind: Any) -> None:
    times = moved_us(*[copy(k, kind, 16 * MB) for k in range(3)])  # A-Ux3
    assert np.diff(times[:, 1]) == pytest.approx(16 * MB_US + SPEC.host_copy_gap_ns / 1e3, abs=0.01)
    free = replace(SPEC, mechanisms=tb.device("h200-no-copy-engines").mechanisms)
    assert np.ptp(moved_us(*[copy(k, kind) for k in range(3)], spec=free)[:, 1]) == 0


def test_directions_and_copies_on_the_gpu_move_at_once() -> None:
    times = moved_us(copy(0, "h2d"), copy(1, "d2h"), copy(2, "d2d"), tb.Memset(MB, stream=3))
    assert times[:, 0].max() < times[:, 1].min()


UP_US = MB / SPEC.both_ways_to_gpu_bandwidth  # of moving it while another one comes back
DOWN_US = MB / SPEC.both_ways_from_gpu_bandwidth


def lasted_us(*copies: tb.Copy, spec: tb.DeviceSpec = SPEC) -> list[float]:
    return [float(x) for x in np.diff(moved_us(*copies, spec=spec))[:, 0]]


def test_while_both_engines_move_bytes_each_is_slower() -> None:
    up, down = lasted_us(copy(0, size=16 * MB), copy(1, "d2h", 16 * MB))
    # The first to end leaves the other one alone.
    assert up == pytest.approx(16 * UP_US, abs=0.1)
    assert 16 * MB_US < down < 16 * DOWN_US
    up, down = lasted_us(copy(0, size=64 * MB), copy(1, "d2h", 4 * MB))
    assert down == pytest.approx(4 * DOWN_US, abs=0.1)
    assert up == pytest.approx(64 * MB_US + 4 * DOWN_US * (1 - MB_US / UP_US), abs=0.1)
    # One that comes later slows what is left.
    late = (kernel(2, 600), tb.RecordEvent(0, 2), tb.WaitEvent(0, 1), copy(1, "d2h", 64 * MB))
    up, down = lasted_us(copy(0, size=64 * MB), *late)  # type: ignore[arg-type]
    assert 64 * MB_US < up < 64 * MB_US + 0.6 * 64 * (UP_US - MB_US)
    assert up == pytest.approx(64 * MB_US + (up - 607) * (1 - MB_US / UP_US), abs=2)
    assert 64 * MB_US < down < 64 * DOWN_US


def test_copies_of_given_durations_take_those() -> None:
    up, down = lasted_us(copy(0, duration=1e-3), copy(1, "d2h", duration=1e-3))
    assert (up, down) == (1000, 1000)
    # Another one is slowed by it.
    _, down = lasted_us(copy(0, duration=1e-3), copy(1, "d2h", 4 * MB))
    assert down == pytest.approx(4 * DOWN_US, abs=0.1)


def test_without_a_bandwidth_of_both_ways_neither_slows_the_other() -> None:
    alone = tb.device("h200-both-ways-as-alone")
    assert lasted_us(copy(0), copy(1, "d2h"), spec=alone) == pytest.approx([MB_US] * 2, abs=0.01)


ONE_ENGINE = replace(SPEC, copy_engine_count=1)
IN_ORDER = replace(ONE_ENGINE, copy_channels=1)
GAP_US = SPEC.host_copy_gap_ns / 1e3


@pytest.mark.parametrize("kinds", [("h2d", "d2h"), ("d2h", "h2d")])
def test_one_engine_for_both_directions_makes_them_take_turns(kinds: Any) -> None:
    both = [copy(stream, kind) for stream, kind in enumerate(kinds)]
    begins, ends = moved_us(*both).T
    assert begins.max() < ends.min()  # two engines: at once
    first, second = moved_us(*both, spec=ONE_ENGINE)
    assert second[0] - first[1] == pytest.approx(GAP_US)
    # Nothing slows them down.
    assert np.ptp([first, second], axis=1) == pytest.approx([MB_US] * 2, abs=0.01)


def test_one_engine_goes_on_in_a_stream_that_turns_round() -> None:
    turning = (copy(0, duration=1e-4), copy(0, "d2h", duration=1e-4))
    one, two = (np.diff(moved_us(*turning, spec=spec).ravel()) for spec in (ONE_ENGINE, SPEC))
    assert one == pytest.approx([100, GAP_US, 100])
    assert two[1] > SPEC.host_copy_latency_ns / 1e3


@pytest.mark.parametrize(("channels", "is_held_up"), [(1, True), (4, False)])
def test_a_copy_back_that_waits_holds_up_those_to_the_gpu(channels: int, is_held_up: bool) -> None:
    program = (copy(0), kernel(0, LONG_US), copy(0, "d2h"), copy(1))
    spec = replace(ONE_ENGINE, copy_channels=channels)
    assert (moved_us(*program, spec=spec)[2, 0] > LONG_US) == is_held_up
    assert moved_us(*program, spec=replace(SPEC, copy_channels=channels))[2, 0] < LONG_US


WORK = st.builds(copy, st.integers(0, 5), st.sampled_from(["h2d", "d2h"]), st.just(MB)) | st.builds(
    kernel, st.integers(0, 5), st.sampled_from([5, 60, LONG_US])
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(WORK, max_size=20), st.integers(1, 8))
def test_an_engine_for_all_makes_one_copy_at_a_time(work: list[Any], channels: int) -> None:
    program = [*work, copy(0), copy(1, "d2h")]
    in_order = moved_us(*program, spec=IN_ORDER)
    assert (in_order[1:, 0] >= in_order[:-1, 1] + GAP_US - 1e-6).all()
    times = moved_us(*program, spec=replace(ONE_ENGINE, copy_channels=channels))
    times = times[times[:, 0].argsort()]
    assert (times[1:, 0] >= times[:-1, 1] + GAP_US - 1e-6).all()
    assert times[:, 1] - times[:, 0] == pytest.approx(MB_US, abs=0.01)


def test_a_copy_that_has_not_waited_is_not_overtaken() -> None:
    # The engine was at the channel of stream 0 last.
    program = (copy(0, size=16384), kernel(3), copy(1), kernel(3), copy(0, size=4 * MB))
    assert np.argsort(moved_us(*program, launch_interval=9e-6)[:, 0]).tolist() == [0, 1, 2]
    # While it learns that one need not wait any more, it learns the same of others.
    waits = (copy(0, size=16384), kernel(1, 60), kernel(0, 65), copy(1), copy(0, size=4 * MB))
    assert np.argsort(moved_us(*waits)[:, 0]).tolist() == [0, 2, 1]


def blocked(kind: Any, blocked_too: int, *last: Any) -> list[Any]:
    """Copies behind kernels of streams 1, 2, ..., and then others."""
    streams = range(1, blocked_too + 1)
    kernels = [kernel(k, LONG_US) for k in streams]
    return [*kernels, *(copy(k, kind) for k in streams), *last]


@pytest.mark.parametrize("kind", ["h2d", "d2h"])
@pytest.mark.parametrize(("channels_taken", "is_held_up"), [(1, False), (2, False), (4, True)])
def test_a_copy_that_waits_holds_up_its_channel(
    kind: Any, channels_taken: int, is_held_up: bool
) -> None:
    program = blocked(kind, channels_taken, copy(0, kind), kernel(0))  # C-U1024k-4-U
    assert (starts_us(*program)[-1] > LONG_US) == is_held_up
    without = tb.device("h200-copy-channel-per-stream")
    assert starts_us(*program, spec=without)[-1] < 60


@pytest.mark.parametrize("last", [copy(0, "d2h"), copy(0, "d2d"), copy(0, "h2d", 64)], ids=str)
def test_it_holds_up_nothing_else(last: tb.Copy) -> None:
    program = blocked("h2d", 4, last, kernel(0), *(kernel(9 + k) for k in range(20)))
    assert max(starts_us(*program)[4:]) < 60


def test_an_engine_empties_a_channel_before_it_turns_to_the_next() -> None:
    # C-U1024k-7-U: streams 1 and 5 share a channel, 2 and 6, 3 and 7, 4 and 0.
    times = moved_us(*blocked("h2d", 7, copy(0)))
    assert (np.argsort(times[:, 0]) + 1).tolist() == [1, 5, 2, 6, 3, 7, 4, 8]


@pytest.mark.parametrize(
    "transfer", [copy(1, "d2d", 64), copy(1, "d2d"), tb.Memset(MB, stream=1)], ids=str
)
def test_kernels_of_the_driver_need_room_on_an_sm(transfer: Transfer) -> None:
    full = kernel(0, 1000, blocks=264, threads=1024)
    assert moved_us(full, transfer)[0, 0] > 1000  # F-warps-X-64
    without = tb.device("h200-no-copy-kernels")
    assert moved_us(full, transfer, spec=without)[0, 1] < 20


@pytest.mark.parametrize("transfer", [copy(1), copy(1, "d2h", 64), tb.Memset(64, stream=1)])
def test_others_need_none(transfer: Transfer) -> None:
    full = kernel(0, 1000, blocks=264, threads=1024)
    assert moved_us(full, transfer)[0, 1] < 40


def test_a_kernel_of_the_driver_stands_in_the_line() -> None:
    full = kernel(0, 300, blocks=264, threads=1024)
    program = [full, copy(1, "d2d", 64 * MB), kernel(2, 50, blocks=132, threads=1024)]
    found = tb.predict(tb.Sequence(program), SPEC)  # F-behind-X
    assert found[1].start_ns is not None
    assert found.transfer_ns is not None
    assert found[1].start_ns.min() > found.transfer_ns[0, 0] + 20_000
    assert "held up behind copy 0 (65536 KB, d2d, stream 1)" in found.explain(1)
    found = tb.predict(tb.Sequence([copy(1, "d2d", 512 * MB), *program[2:]]), SPEC)
    assert "held up behind copy 0 (524288 KB, d2d, stream 1)" in found.explain(0)


@pytest.mark.parametrize(
    ("transfer", "is_held_up"),
    [
        (copy(0, "d2d"), True),
        (tb.Memset(64, stream=0), True),
        (copy(0, "h2d", 64), True),
        (copy(0, "h2d"), False),
        (copy(0, "d2h", 64), False),
    ],
    ids=str,
)
def test_what_no_engine_moves_takes_a_hardware_queue(transfer: Transfer, is_held_up: bool) -> None:
    one = replace(SPEC, hardware_queues=1)
    _, other = starts_us(kernel(0, LONG_US), transfer, kernel(1), spec=one)
    assert (other > LONG_US) == is_held_up


def test_the_host_memory_that_a_kernel_writes_does_not_end_the_wait_for_a_copy() -> None:
    program = (kernel(0, 60), copy(0), kernel(0))
    slow = replace(SPEC, host_write_ns=400)
    # The GPU learns of the first kernel's end 0.4 us later, and wakes as late as ever.
    assert starts_us(*program, spec=slow)[1] == pytest.approx(starts_us(*program)[1], abs=0.5)


@pytest.mark.parametrize(("size", "extra"), [(8192, 0), (64 * 1024, SPEC.copy_wake_ns / 1e3)])
def test_an_idle_gpu_learns_late_of_the_end_of_a_copy(size: int, extra: float) -> None:
    program = [kernel(0, 60), copy(0, "d2h", size), kernel(0)]
    late, prompt = (
        starts_us(*program, spec=spec)[1] for spec in (SPEC, replace(SPEC, copy_wake_ns=0))
    )
    assert late - prompt == pytest.approx(extra)
    busy = [kernel(1, 900), *program]
    late, prompt = (
        starts_us(*busy, spec=spec)[2] for spec in (SPEC, replace(SPEC, copy_wake_ns=0))
    )
    assert late == prompt


@pytest.mark.parametrize("transfer", [copy("legacy"), copy("legacy", "d2d")], ids=str)
def test_the_legacy_stream_waits_for_all_and_all_for_it(transfer: tb.Copy) -> None:
    program = [kernel(1, LONG_US), transfer, kernel(2)]  # H-legacy-U
    assert starts_us(*program)[1] > LONG_US
    free = replace(kernel(1, LONG_US), non_blocking=True)
    assert starts_us(free, transfer, kernel(2))[1] < 60


def test_copies_wait_for_the_legacy_stream_unless_theirs_is_non_blocking() -> None:
    first = kernel("legacy", LONG_US)
    assert moved_us(first, copy(1))[0, 0] > LONG_US  # H-legacy-first-U
    assert moved_us(first, copy(1, non_blocking=True))[0, 0] < 20


def test_cuda_events_order_copies_and_kernels() -> None:
    program = [
        kernel(0, 60), tb.RecordEvent(0, 0), tb.WaitEvent(0, 1), copy(1), tb.RecordEvent(1, 1),
        tb.WaitEvent(1, 2), kernel(2),
    ]  # fmt: skip
    assert starts_us(*program)[1] - 60 == pytest.approx(34.2, abs=1)  # D-U-1048576-events


def test_the_host_waits_for_a_copy_that_blocks() -> None:
    _, late = starts_us(kernel(0, LONG_US), copy(0, blocking=True), kernel(1))
    assert late == pytest.approx(LONG_US + 35, abs=1)  # G-behind-U-p1-b1
    _, soon = starts_us(kernel(0, LONG_US), copy(0), kernel(1))
    assert soon < 1
    _, later = starts_us(kernel(0), copy(0, blocking=True), kernel(1), issue_times=[0, 2e-3])
    assert later == pytest.approx(2000)


def test_the_host_copies_from_and_to_pageable_memory() -> None:
    calls_us = MB / SPEC.pageable_bandwidth
    _, other = starts_us(kernel(1, LONG_US), copy(0, pinned=False), kernel(2))
    assert other == pytest.approx(calls_us, abs=1)  # though it waits for nothing
    _, other = starts_us(kernel(0, LONG_US), copy(0, "d2h", pinned=False), kernel(2))
    assert other > LONG_US + MB / SPEC.pageable_return_bandwidth
    small = copy(0, size=4096, pinned=False)
    _, after = starts_us(kernel(0, 60), small, kernel(0))
    assert after - 60 == pytest.approx(3.9, abs=1)


def test_duration_of_a_copy_from_pageable_memory_is_that_of_the_host() -> None:
    def waits_us(size: int, us: float) -> tuple[float, float]:
        """How long the next call waits for that of the copy, and how long the GPU moves bytes."""
        staged = copy(0, size=size, pinned=False, duration=us * 1e-6)
        events = kernel(1, LONG_US), staged, kernel(2)
        begin, end = moved_us(*events)[0]
        return starts_us(*events)[1], end - begin

    for size in (16 * MB, 2 * MB):
        none, some = waits_us(size, 0), waits_us(size, 300)
        assert some[0] - none[0] == pytest.approx(300, abs=1)
        assert [none[1], some[1]] == pytest.approx([MB_US, MB_US], abs=1e-3)  # the last megabyte
    back = copy(0, "d2h", pinned=False, duration=3e-4)
    ((begin, end),) = moved_us(back)
    assert end - begin == pytest.approx(300)


def test_copies_that_take_no_time_all_happen_at_once() -> None:
    many = [copy(0, "d2h", duration=0.0) for _ in range(3000)]
    times = moved_us(*many, spec=replace(SPEC, host_copy_gap_ns=0))
    assert np.ptp(times) == 0


def test_no_order_of_nodes_and_streams_stops_an_engine() -> None:
    graph = tb.Graph([tb.Copy(64, "d2h"), kernel(None), tb.Copy(64, "d2h")], [(2, 1), (1, 0)])
    program = [
        kernel(0, 50), copy(0, "d2h"), graph.launch(0), copy(0, "d2h"), copy(1, "d2h"),
        copy(1, pinned=False), copy(1), copy(1, pinned=False), copy(0),
    ]  # fmt: skip
    for spec in (replace(SPEC, copy_channels=1), IN_ORDER, ONE_ENGINE):
        assert (moved_us(*program, spec=spec)[:, 1] > 0).all()


def test_a_program_of_copies_alone_is_one() -> None:
    found = tb.predict(tb.Sequence([copy(0), tb.Memset(64, stream=0)]), SPEC)
    assert len(found) == 0
    assert found.transfer_ns is not None
    assert len(found.transfer_ns) == 2


@pytest.mark.parametrize(
    "name", [f"{name}{less}" for name in tb.devices() for less in ("", NO_KERNELS)]
)
def test_a_copy_that_ends_as_it_begins_lets_the_next_memset_begin(name: str) -> None:
    """Which takes a hardware queue, and is no launch."""
    before = [copy(0, size=MB), tb.Memset(64, stream=0)] * 3
    found = tb.predict(tb.Sequence([*before, kernel(0, 1)]), name)
    assert found.transfer_ns is not None
    end = int(found.transfer_ns[:, 1].max())
    assert found[0].start_ns is not None
    assert int(found[0].start_ns[0]) >= end


def test_times_of_issue_for_every_event_hold_for_copies() -> None:
    copy = tb.Copy(1 << 26, "h2d", stream=0)
    kernel = tb.Launch(132, 256, 32, stream=0, duration=1e-4)
    program = tb.Sequence([copy, kernel, copy, kernel])

    def begins(times: list[float]) -> list[int]:
        found = tb.predict(program, "h200", issue_times=times).transfer_ns
        assert found is not None
        return [int(begin) // 1_000_000 for begin, _ in found]

    assert begins([0.0, 10e-3]) == [0, 1]  # right after the launch before it
    assert begins([0.0, 0.0, 10e-3, 10e-3]) == [0, 10]
    assert begins([2e-3, 3e-3, 9e-3, 10e-3]) == [2, 9]
    with pytest.raises(ValueError, match="2 ascending times, or 4, one per event, are needed"):
        begins([0.0] * 3)
    with pytest.raises(ValueError, match="ascending"):
        begins([0.0, 2e-3, 1e-3, 3e-3])
