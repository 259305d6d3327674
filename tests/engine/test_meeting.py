"""Blocks that meet, on one GPU and on several, and programs that hang."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import tbsched as tb
from contract.references.meeting import play
from helpers import examples, gpu
from tbsched.program.sequence import (
    Event,
    Launch,
    RecordEvent,
    Sequence,
    WaitEvent,
    WaitValue,
    WriteValue,
)
from tbsched.traces.annotations import NEVER_NS

US = 1e-6
STREAMS = st.integers(0, 2)
GPUS = st.integers(0, 2)
FLAGS = st.sampled_from(["x", "y"])
BLOCKS = st.integers(1, 6)
# Hypothesis examines each new strategy, which takes longer than drawing from it.
MAYBE_STREAM = STREAMS | st.none()
NAMES = st.sampled_from([None, None, "a", "a", "b", "c", "in order"])
DURATION = st.integers(1, 4).map(lambda us: us * US)
DURATIONS = {blocks: DURATION | st.tuples(*[DURATION] * blocks) for blocks in range(1, 7)}


@st.composite
def launches(draw: st.DrawFn) -> Launch:
    blocks = draw(BLOCKS)
    name = draw(NAMES)
    return Launch(
        blocks,
        32,
        16,
        stream=draw(MAYBE_STREAM),
        duration=draw(DURATIONS[blocks]),
        gpu=draw(GPUS),
        meets=name,
        in_block_order=name == "in order",
    )


EVENTS: st.SearchStrategy[Event] = st.one_of(
    launches(),
    launches(),
    launches(),
    st.builds(RecordEvent, st.integers(0, 1), STREAMS, gpu=GPUS),
    st.builds(WaitEvent, st.integers(0, 1), STREAMS, gpu=GPUS),
    st.builds(WriteValue, FLAGS, st.integers(1, 2), stream=STREAMS, gpu=GPUS),
    st.builds(WaitValue, FLAGS, st.integers(1, 2), stream=STREAMS, gpu=GPUS),
)
PROGRAMS = st.lists(EVENTS, min_size=1, max_size=12).map(Sequence)


def toy(slots: int) -> tb.DeviceSpec:
    """A GPU of one SM, with a hardware queue for each stream, on which nothing else takes time."""
    return gpu(
        blocks_per_sm=slots,
        hardware_queues=32,
        resident_grids=128,
        launch_latency_ns=0,
        completion_latency_ns=0,
        exit_latency_ns=0,
        event_latency_ns=0,
        launch_switch_ns=0,
    )


def meet(blocks: int, name: str | None = "a", **rest: object) -> Launch:
    return Launch(blocks, 32, 16, duration=US, meets=name, **rest)  # type: ignore[arg-type]


@settings(deadline=None, derandomize=True, max_examples=examples(2000))
@given(program=PROGRAMS, slots=st.integers(1, 8))
@example(  # an event that is recorded twice: a wait is for the last record before it
    program=Sequence(
        [
            RecordEvent(0, 0),
            meet(1, None, stream=1),
            RecordEvent(0, 1),
            WaitEvent(0, 2),
            meet(1, None, stream=2),
        ]
    ),
    slots=4,
)
@example(  # two GPUs that begin the same collectives in other orders
    program=Sequence(
        [
            meet(3, "a", stream=0),
            meet(3, "b", stream=1, gpu=1),
            meet(3, "b", stream=1),
            meet(3, "a", stream=0, gpu=1),
        ]
    ),
    slots=4,
)
def test_meeting_is_as_it_is_played_literally(program: Sequence, slots: int) -> None:
    alone = [
        one
        for one in program.launches
        if one.meets is not None and one.blocks == 1 and not one.in_block_order
    ]
    names = [one.meets for one in program.launches]
    assume(not any(names.count(one.meets) == 1 for one in alone))
    writes = {
        (event.name, event.value) for event in program if isinstance(event, WriteValue)
    }  # of two values of one name, which is written last is a race of two streams
    assume(len(writes) == len({name for name, _ in writes}))
    expected = play(program, slots)
    trace = tb.predict(program, [toy(slots)] * 3)
    starts = [p.start_ns[p.smid >= 0].tolist() for p in trace]  # type: ignore[index]
    assert starts == [[1000 * start for start in own] for own in expected.starts]
    assert (trace.hang is not None) == expected.hangs
    if trace.hang is not None:
        begun = [int((p.smid >= 0).sum()) for p in trace]
        assert {each.launch: each.blocks for each in trace.hang.stranded} == {
            number: launch.blocks - begun[number]
            for number, launch in enumerate(program.launches)
            if begun[number] < launch.blocks
        }
        never = [(p.end_ns == NEVER_NS).any() for p in trace]
        left = {each.launch for each in trace.hang.stranded} | {*trace.hang.waiting}
        assert left == {number for number, any_left in enumerate(never) if any_left}


@settings(deadline=None, derandomize=True, max_examples=examples(400))
@given(program=PROGRAMS, slots=st.integers(1, 8))
def test_circle_is_one_and_a_hang_without_one_waits_for_a_value(
    program: Sequence, slots: int
) -> None:
    try:
        trace = tb.predict(program, [toy(slots)] * 3)
    except ValueError:
        assume(False)
    if trace.hang is None:
        return
    cycle = trace.hang.cycle
    for step, following in zip(cycle, (*cycle[1:], *cycle[:1]), strict=True):
        assert step.other == following.launch
        assert step.gpu == program.launch_gpus[step.launch]
    if not cycle:
        assert trace.hang.values
        assert "waits until the value" in trace.hang.text
    assert trace.makespan == math.inf or not (trace.hang.waiting or trace.hang.stranded)


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(program=st.lists(launches(), min_size=1, max_size=10), slots=st.integers(1, 8))
def test_gpus_that_share_nothing_run_as_each_alone(program: list[Launch], slots: int) -> None:
    plain = [
        tb.Launch(one.blocks, 32, 16, stream=one.stream, duration=one.duration, gpu=one.gpu)
        for one in program
    ]
    together = tb.predict(Sequence(plain), [toy(slots)] * 3)
    for index in range(3):
        own = [number for number, one in enumerate(plain) if one.gpu == index]
        alone = tb.predict(
            Sequence(
                [
                    tb.Launch(one.blocks, 32, 16, stream=one.stream, duration=one.duration)
                    for one in plain
                    if one.gpu == index
                ]
            ),
            toy(slots),
        )
        for number, placement in zip(own, alone, strict=True):
            for key in ("smid", "start_ns", "end_ns"):
                assert np.array_equal(getattr(together[number], key), getattr(placement, key))
            assert together[number].hardware_queue == placement.hardware_queue


def test_duration_counts_from_when_all_blocks_are_resident() -> None:
    busy = Launch(2, 32, 16, stream=0, duration=5 * US)
    trace = tb.predict(Sequence([busy, meet(2, stream=0), meet(2, gpu=1)]), [toy(4)] * 2)
    assert trace.hang is None
    assert [set(p.start_ns.tolist()) for p in trace] == [{0}, {5000}, {0}]  # type: ignore[union-attr]
    assert [set(p.end_ns.tolist()) for p in trace] == [{5000}, {6000}, {6000}]  # type: ignore[union-attr]


def test_launch_in_block_order_never_hangs_by_itself() -> None:
    many = meet(9, in_block_order=True)
    assert tb.predict(Sequence([many]), toy(4)).hang is None
    hang = tb.predict(Sequence([meet(9)]), toy(4)).hang
    assert hang is not None
    assert [(each.blocks, each.cause) for each in hang.stranded] == [(5, "slots")]


def test_one_list_of_one_device_is_that_device() -> None:
    program = Sequence([meet(3), Launch(9, 32, 16, duration=US)])
    one, listed = tb.predict(program, toy(4)), tb.predict(program, [toy(4)])
    assert np.array_equal(one.timeline, listed.timeline)
    assert listed.devices == (one.device,)


def test_streams_of_two_gpus_are_two_and_legacy_streams_too() -> None:
    for stream in (0, tb.LEGACY_STREAM):
        first = Launch(1, 32, 16, stream=stream, duration=US)
        second = Launch(1, 32, 16, stream=stream, duration=US, gpu=1)
        trace = tb.predict(Sequence([first, second]), [toy(4)] * 2)
        assert trace.concurrent(0, 1)


def test_event_and_value_of_another_gpu_are_causes_of_waits() -> None:
    first = Launch(1, 32, 16, stream=0, duration=US)
    second = Launch(1, 32, 16, stream=0, duration=US, gpu=1)
    event = [first, RecordEvent(0, 0), WaitEvent(0, 0, gpu=1), second]
    value = [WaitValue("x", stream=0, gpu=1), second, first, WriteValue("x", stream=0)]
    for program, cause, behind in ((event, "event", 0), (value, "value", 1)):
        trace = tb.predict(Sequence(program), [toy(4)] * 2)
        assert trace.waits is not None
        row = trace.waits[-1]
        assert (row["cause"], row["behind"]) == (cause, behind)
        assert "launch" in trace.explain(int(row["launch"]))


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([meet(1)], r"Launch\.meets: 'a' is the name of launch 0 alone, which has one block"),
        (
            [meet(2), meet(2, in_block_order=True)],
            r"Launch\.in_block_order: True of launch 1, but False of launch 0",
        ),
        (
            [tb.Graph([meet(2)]).launch(0)] * 2,
            r"Sequence\.events\[1\]: a graph with a launch that meets 'a' is launched again",
        ),
        ([Launch(1, 32, 16, duration=US, gpu=1)], r"predict\.device: one device is one GPU"),
    ],
)
def test_what_cannot_meet_is_refused_by_name(events: list[Event], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tb.predict(Sequence(events), toy(4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device": ["xavier"] * 2}, r"predict\.device: 2 devices, .* GPU 2; give a device"),
        ({"device": []}, r"predict\.device: 0 devices"),
        ({"policy": lambda room: 0}, r"predict\.policy: a policy of your own is for one GPU"),
        ({"warp_slots": True}, r"predict\.warp_slots: True is for one GPU"),
        ({"interference": "measured"}, r"predict\.interference: 'measured' is for one GPU"),
    ],
)
def test_what_is_for_one_gpu_is_refused_for_several(
    arguments: dict[str, object], message: str
) -> None:
    program = Sequence([Launch(1, 32, 16, duration=US, gpu=2)])
    with pytest.raises(ValueError, match=message):
        tb.predict(program, **{"device": ["xavier"] * 3, **arguments})  # type: ignore[arg-type]


def test_held_sequence_has_one_gpu() -> None:
    with pytest.raises(ValueError, match=r"several devices need launches with durations"):
        tb.predict(Sequence([Launch(1, 32, 16)]), ["xavier", "xavier"])


CALLS: st.SearchStrategy[Event] = st.one_of(
    EVENTS,
    st.builds(
        Launch,
        st.integers(1, 6),
        st.just(32),
        st.just(16),
        stream=STREAMS,
        gpu=GPUS,
        host=st.integers(0, 1),
        meets=st.sampled_from([None, "a", "b"]),
        duration=st.just(US),
        completion_event=st.sampled_from([None, 0]),
    ),
    st.builds(RecordEvent, st.integers(0, 1), STREAMS, gpu=GPUS, host=st.integers(0, 1)),
    st.builds(tb.Synchronize, STREAMS | st.none(), gpu=GPUS, host=st.integers(0, 1)),
    st.builds(tb.Synchronize, event=st.integers(0, 1), host=st.integers(0, 1)),
    st.builds(tb.HostCall, st.just("cudaFree"), st.just(US), waits=st.just("device"), gpu=GPUS),
    st.builds(tb.Copy, st.just(64), st.just("h2d"), stream=STREAMS, gpu=GPUS),
)


@settings(deadline=None, derandomize=True, max_examples=examples(400))
@given(events=st.lists(CALLS, min_size=1, max_size=8), slots=st.integers(1, 8))
@example(events=[tb.Copy(64, "h2d", gpu=1)], slots=4)  # no block runs
@example(  # what never starts is alone in its stream
    events=[meet(9, stream=1), meet(2, stream=2)], slots=4
)
@example(  # a host waits for an event that a launch records
    events=[
        meet(2, stream=0),
        Launch(1, 32, 16, duration=US, stream=0, completion_event=0),
        tb.Synchronize(event=0),
        meet(2, stream=1),
    ],
    slots=8,
)
def test_what_hangs_is_said_shown_saved_and_read_again(events: list[Event], slots: int) -> None:
    try:
        program = Sequence(events)
        trace = tb.predict(program, [toy(slots)] * 3, host=0.0)
    except ValueError:  # such as an event that nobody records
        assume(False)
    assert trace._repr_html_()
    assert all(trace.explain(number) for number in range(len(trace)))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "trace.jsonl"
        tb.save_traces(place, [trace])
        (again,) = tb.load_traces(place)
        assert again.hang == trace.hang
        if trace.hang is not None:
            assert str(trace.hang).startswith("It hangs.")
            with pytest.raises(ValueError, match=r"the program never ends.*It hangs"):
                tb.load_program(place)


def test_host_that_waits_for_another_threads_event_is_part_of_the_circle() -> None:
    def rank(gpu: int) -> Launch:
        return meet(8, stream=gpu, gpu=gpu, host=gpu)

    record = RecordEvent(1, stream=1, gpu=1, host=1)
    program = Sequence([tb.Synchronize(event=1), rank(0), rank(1), record])
    hang = tb.predict(program, [toy(8)] * 2, host=[1e-4, 0.0, 0.0, 0.0]).hang
    assert hang is not None
    assert [(step.launch, step.other, step.cause) for step in hang.cycle] == [
        (1, 0, "meets"),
        (0, 1, "host"),
    ]


def test_host_that_waits_for_another_threads_gpu_is_part_of_the_circle() -> None:
    program = Sequence([tb.Synchronize(gpu=1), meet(8), meet(8, gpu=1, host=1)])
    hang = tb.predict(program, [toy(8)] * 2, host=[1e-5, 0.0, 0.0]).hang
    assert hang is not None
    assert [(step.launch, step.other) for step in hang.cycle] == [(1, 0), (0, 1)]


def test_host_that_waits_for_a_hang_makes_no_more_calls() -> None:
    after = Launch(1, 32, 16, duration=US, name="after")
    program = Sequence([meet(9), tb.Synchronize(), after])
    trace = tb.predict(program, toy(4), host=0.0)
    assert trace.hang is not None
    assert trace.hang.calls == (1,)
    assert trace.hang.stranded[1].cause == "host"
    assert trace.call_times is not None
    assert trace.call_times[1][1] == math.inf
    assert trace.issue_times == (trace.call_times[0][0], math.inf)
    assert trace.host_gaps is None
    assert "never" in trace.explain(1)
    with pytest.raises(ValueError, match=r"^response_times: the program never ends\. It hangs"):
        trace.response_times([0.0, 0.0])


def test_hang_of_two_orders_is_a_circle_over_two_gpus() -> None:
    program = Sequence(
        [
            meet(3, "a", stream=0),
            meet(3, "b", stream=1, gpu=1),
            meet(3, "b", stream=1),
            meet(3, "a", stream=0, gpu=1),
        ]
    )
    hang = tb.predict(program, [toy(4)] * 2).hang
    assert hang is not None
    assert [(step.launch, step.other, step.cause) for step in hang.cycle] == [
        (0, 3, "meets"),
        (3, 1, "slots"),
        (1, 2, "meets"),
        (2, 0, "slots"),
    ]
    assert "Launch 3 on GPU 1 waits for slots" in str(hang)


def test_residents_of_each_gpu_are_its_own_launches() -> None:
    program = Sequence([meet(2, name=None), meet(3, gpu=1)])
    trace = tb.predict(program, [toy(4)] * 2)
    assert [trace.residents(0.0, gpu=k).used_slots.tolist() for k in range(2)] == [[2], [3]]
    with pytest.raises(ValueError, match=r"residents\.gpu: 2 is outside 0\.\.1"):
        trace.residents(gpu=2)


SPINS = Launch(264, 1024, 32, stream=1, duration=1e-5, meets="all", name="spins")
LATE = Launch(1, 32, 32, stream=0, duration=1e-5, meets="all", name="late")
SMALL = Launch(1, 32, 32, duration=1e-5)


@pytest.mark.parametrize(
    "graph",
    [
        tb.Graph([tb.Conditional(tb.Graph([SMALL])), SMALL], [(0, 1)]),
        tb.Graph([tb.Conditional(tb.Graph([SMALL]), times=2), SMALL]),
        tb.Graph([SMALL, tb.Conditional(tb.Graph([SMALL])), SMALL], [(0, 1), (1, 2)]),
    ],
)
def test_hang_of_a_graph_says_that_its_decider_has_no_room(graph: tb.Graph) -> None:
    program = Sequence([SPINS, graph.launch(stream=0), LATE])
    hang = tb.predict(program, "h200", launch_interval=1e-5).hang
    assert hang is not None
    for stranded in hang.stranded:
        assert stranded.behind != stranded.launch
    last = len(program.launches) - 1
    assert [(step.launch, step.other, step.cause) for step in hang.cycle] == [
        (0, last, "meets"),
        (last, 1, "stream"),
        (1, 0, "configuration"),
    ]


@pytest.mark.parametrize(
    "before", [tb.Copy(1 << 20, "d2d", stream=0), tb.Memset(1 << 20, stream=0)]
)
def test_hang_behind_a_kernel_of_the_driver_says_what_that_needs(before: Event) -> None:
    hang = tb.predict(Sequence([SPINS, before, LATE]), "h200", launch_interval=1e-5).hang
    assert hang is not None
    assert [(step.launch, step.other, step.cause) for step in hang.cycle] == [
        (0, 1, "meets"),
        (1, 0, "warps"),
    ]


def test_hang_behind_copies_names_the_launch_before_them() -> None:
    first = tb.Launch(1, 32, 32, stream=0, duration=1e-5, meets="all")
    between: list[Event] = [tb.Copy(1 << 20, "h2d", stream=0), tb.HostFunction(1e-6, stream=0)]
    hang = tb.predict(Sequence([first, *between, LATE]), "h200").hang
    assert hang is not None
    assert [(each.launch, each.cause, each.behind) for each in hang.stranded] == [(1, "stream", 0)]
