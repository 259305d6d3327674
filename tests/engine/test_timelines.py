"""Laws of predictions over time, and the core against a plain simulation of a toy GPU."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contract.references.hosts import CallTimes
from contract.references.timed import MOST_URGENT, HangError, Toy, simulate
from helpers import examples, gpu
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import launch_orders, predict, predict_launches
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Event,
    HostCall,
    HostFunction,
    Launch,
    RecordEvent,
    Sequence,
    Stream,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)
from tbsched.traces.timeline import span_of
from tbsched.traces.trace import Trace

REPEATABLE = settings(deadline=None, derandomize=True)
US = 1e-6
# Built once: Hypothesis examines each new strategy, which takes longer than drawing from it.
STREAMS: st.SearchStrategy[Stream] = st.sampled_from([0, 1, 2, 3, 4, LEGACY_STREAM])
STREAM_OR_NONE = STREAMS | st.none()
PRIORITIES = st.integers(MOST_URGENT, 0)
BY_PRIORITY = {"leftover": True, "fifo": False, "pass_by": True, "one_line": True}
DEVICES = ("h200", "rtx3090", "xavier")


TOY_BLOCKS = st.integers(1, 6)
TOY_DURATION = st.integers(1, 6).map(lambda us: us * US)
TOY_DURATIONS = {n: TOY_DURATION | st.tuples(*[TOY_DURATION] * n) for n in range(1, 7)}


@st.composite
def toy_launches(draw: st.DrawFn) -> Launch:
    blocks = draw(TOY_BLOCKS)
    return Launch(
        blocks,
        32,
        16,
        stream=draw(STREAM_OR_NONE),
        priority=draw(PRIORITIES),
        duration=draw(TOY_DURATIONS[blocks]),
    )


NON_BLOCKING = 2
WAY_STREAMS: st.SearchStrategy[Stream]
WAY_STREAMS = st.sampled_from([0, 0, 0, 0, 1, NON_BLOCKING, LEGACY_STREAM])
WAY_TIME = st.sampled_from([None, 0.0, 0.0, US, 3 * US, 9 * US])
FEW_BLOCKS = st.sampled_from([1, 1, 2])
WAYS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "programmatic": st.sampled_from([True, True, True, False]),
        "trigger": WAY_TIME,
        "memory_wait": WAY_TIME,
        "completion_event": st.sampled_from([None, None, None, 0, 1]),
        "cooperative": st.sampled_from([False, False, False, True]),
        "duration": st.integers(1, 30).map(lambda us: us * US),
        "priority": PRIORITIES,
    }
)


@st.composite
def way_launches(draw: st.DrawFn) -> Launch:
    stream = draw(WAY_STREAMS)
    return Launch(
        draw(FEW_BLOCKS), 32, 16, stream=stream, non_blocking=stream == NON_BLOCKING, **draw(WAYS)
    )


def way_programs() -> st.SearchStrategy[Sequence]:
    """Launches that depend on each other in every way, most of them in one stream."""
    cuda = cuda_events(RecordEvent, WAY_STREAMS) | cuda_events(WaitEvent, WAY_STREAMS)
    launches = way_launches()
    events = st.one_of(launches, launches, launches, cuda)
    return st.lists(events, min_size=4, max_size=14).map(Sequence)


def cuda_events(
    kind: type[RecordEvent | WaitEvent], streams: st.SearchStrategy[Stream] = STREAMS
) -> st.SearchStrategy[Event]:
    return st.builds(kind, st.integers(0, 1), streams)


def programs(launches: st.SearchStrategy[Launch]) -> st.SearchStrategy[Sequence]:
    events = launches | cuda_events(RecordEvent) | cuda_events(WaitEvent)
    return st.lists(events, min_size=1, max_size=16).map(Sequence)


def big_launches() -> st.SearchStrategy[Launch]:
    return st.builds(
        Launch,
        st.integers(1, 400),
        st.integers(1, 1024),
        st.integers(16, 64),
        st.sampled_from([0, 0, 1000, 20_000, 49_000]),
        local_memory=st.sampled_from([0, 0, 0, 4096]),
        carveout=st.sampled_from([None, None, 50, 100]),
        stream=STREAM_OR_NONE,
        priority=PRIORITIES,
        duration=st.sampled_from([0.0, US, 2 * US, 7 * US]),
    )


@st.composite
def issued(
    draw: st.DrawFn, some: st.SearchStrategy[Sequence], gaps: st.SearchStrategy[int]
) -> tuple[Sequence, list[int]]:
    """A program, and when the host issues each launch in nanoseconds."""
    program = draw(some)
    drawn = [draw(gaps) for _ in program.launches]
    return program, list(itertools.accumulate(drawn))


def in_seconds(times_ns: list[int]) -> list[float]:
    return [time / 1e9 for time in times_ns]


def test_every_order_of_launches_has_its_rules_here() -> None:
    assert {row.name for row in launch_orders()} == set(BY_PRIORITY)


# Few values, so that much happens at the same instant.
LATENCIES = st.sampled_from([0, 0, 500, 1000, 2500])


@dataclass(frozen=True)
class ToyGpu:
    """The same device for both."""

    toy: Toy
    order: str

    @property
    def spec(self) -> DeviceSpec:
        toy = self.toy
        return gpu(
            blocks_per_sm=toy.slots,
            hardware_queues=toy.queues,
            resident_grids=toy.grids,
            launch_order=self.order,
            priority_levels=1 - MOST_URGENT,
            launch_latency_ns=toy.launch_latency,
            completion_latency_ns=toy.completion_latency,
            exit_latency_ns=toy.exit_latency,
            event_latency_ns=toy.event_latency,
            launch_switch_ns=toy.launch_switch,
            trigger_latency_ns=toy.trigger_latency,
            launch_completion_latency_ns=toy.completed_latency,
            load_ns=toy.load,
            queue_places=toy.places,
            stream_stretches=toy.stretches,
            launch_call_ns=toy.calls.launch,
            event_call_ns=toy.calls.event,
            host_function_call_ns=toy.calls.event,
            value_call_ns=toy.calls.event,
            synchronize_ns=toy.calls.synchronize,
            first_use_ns=toy.calls.first_use,
        )


@st.composite
def toy_gpus(draw: st.DrawFn, slots: st.SearchStrategy[int]) -> ToyGpu:
    order = draw(st.sampled_from(sorted(BY_PRIORITY)))
    toy = Toy(
        draw(slots),
        queues=draw(st.integers(1, 4)),
        grids=draw(st.integers(1, 5)),
        by_priority=BY_PRIORITY[order],
        head_of_line=order != "pass_by",
        launch_latency=draw(LATENCIES),
        completion_latency=draw(LATENCIES),
        exit_latency=draw(LATENCIES),
        event_latency=draw(LATENCIES),
        launch_switch=draw(LATENCIES),
        # A trigger takes time. In the very nanosecond of a start, nothing says who is first.
        trigger_latency=draw(LATENCIES) or 1,
        completed_latency=draw(LATENCIES),
        load=draw(LATENCIES),
        places=draw(st.sampled_from([1021, 1, 1, 2])),
        stretches=draw(st.sampled_from([56, 1, 1, 2])),
        calls=CallTimes(*[draw(LATENCIES) for _ in range(4)]),
    )
    return ToyGpu(toy, order)


def check_against_plain_simulation(
    device: ToyGpu, sequence: Sequence, times_ns: list[int], *, gaps: bool = False
) -> None:
    """Times of issue of launches, or gaps before all calls."""
    seconds = in_seconds(times_ns)
    given: dict[str, Any] = {"host" if gaps else "issue_times": seconds}
    try:
        expected, returned = simulate(
            sequence, device.toy, *([], times_ns) if gaps else (times_ns,)
        )
    except HangError:
        assert predict(sequence, device.spec, **given).hang is not None
        return
    trace = predict(sequence, device.spec, **given)
    found = [
        (p.hardware_queue, p.start_ns.tolist(), p.end_ns.tolist())  # type: ignore[union-attr]
        for p in trace
    ]
    assert found == [(work.queue, work.starts, work.ends) for work in expected]
    if gaps:
        assert trace.call_times is not None
        assert [round(1e9 * end) for _, end in trace.call_times] == returned


GAPS = st.sampled_from([0, 0, 500, 1000, 4000])


@settings(REPEATABLE, max_examples=examples(1500))
@given(program=issued(programs(toy_launches()), GAPS), device=toy_gpus(st.integers(1, 8)))
def test_toy_gpu_runs_as_a_plain_simulation_says(
    program: tuple[Sequence, list[int]], device: ToyGpu
) -> None:
    check_against_plain_simulation(device, *program)


@settings(REPEATABLE, max_examples=examples(400))
@given(program=issued(way_programs(), GAPS), device=toy_gpus(st.integers(2, 4)))
def test_dependent_and_cooperative_launches_run_as_a_plain_simulation_says(
    program: tuple[Sequence, list[int]], device: ToyGpu
) -> None:
    check_against_plain_simulation(device, *program)


HOSTS = st.sampled_from([0, 0, 1, 2])
SYNCHRONISATIONS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Synchronize, host=HOSTS),
    st.builds(Synchronize, stream=STREAMS, host=HOSTS),
    st.builds(Synchronize, event=st.integers(0, 1), host=HOSTS),
)


OTHER = Launch(1, 32, 16, stream=1, duration=US)
# Values only rise: where a value is written twice at one instant, nothing says what a wait sees.
HOST_WORK: st.SearchStrategy[Event] = st.one_of(
    st.builds(HostFunction, TOY_DURATION | st.just(0.0), stream=STREAM_OR_NONE, host=HOSTS),
    st.builds(HostCall, st.just("cudaMalloc"), TOY_DURATION, host=HOSTS),
    st.builds(HostCall, st.just("cudaFree"), TOY_DURATION, waits=st.just("device"), host=HOSTS),
    st.builds(
        HostCall, st.just("f"), TOY_DURATION, waits=st.just("stream"), stream=STREAMS, host=HOSTS
    ),
    *[
        st.builds(kind, st.sampled_from("ab"), stream=STREAMS, host=HOSTS)
        for kind in (WriteValue, WriteValue, WriteValue, WaitValue)
    ],
)


@st.composite
def hosted_launches(draw: st.DrawFn, launches: st.SearchStrategy[Launch]) -> Launch:
    first_use = draw(st.sampled_from([False, False, False, True]))
    name = draw(st.sampled_from([None, "k"])) if first_use else None
    return dataclasses.replace(draw(launches), first_use=first_use, name=name, host=draw(HOSTS))


@st.composite
def hosted_programs(
    draw: st.DrawFn, launches: st.SearchStrategy[Launch], *others: st.SearchStrategy[Event]
) -> tuple[Sequence, list[int]]:
    """A program of several host threads, and the gap before each call in nanoseconds."""
    cuda = [st.builds(kind, st.integers(0, 1), STREAMS, HOSTS) for kind in (RecordEvent, WaitEvent)]
    cuda += [
        st.builds(RecordEvent, st.just(2), STREAMS, HOSTS, timing=st.just(True)),
        st.builds(WaitEvent, st.just(2), STREAMS, HOSTS),
    ]
    events = st.one_of(
        hosted_launches(launches), hosted_launches(launches), *cuda, SYNCHRONISATIONS, *others
    )
    program = Sequence(draw(st.lists(events, min_size=2, max_size=14)))
    return program, [draw(GAPS) for _ in program]


@settings(REPEATABLE, max_examples=examples(250))
@given(program=hosted_programs(toy_launches()), device=toy_gpus(st.integers(1, 8)))
@example(
    program=(Sequence([*4 * [Launch(1, 32, 16, stream=0, duration=US)], OTHER]), [0] * 5),
    device=ToyGpu(Toy(8, queues=2, grids=8, by_priority=True, places=1), "leftover"),
)
@example(  # the last call waits for the queue that it found full
    program=(
        Sequence(
            [
                Launch(1, 32, 16, stream=0, duration=US),
                Synchronize(),
                Launch(1, 32, 16, duration=US),
                Launch(1, 32, 16, priority=-1, duration=US),
                Launch(1, 32, 16, stream=0, duration=US),
            ]
        ),
        [0] * 5,
    ),
    device=ToyGpu(Toy(1, queues=2, grids=1, by_priority=True, places=1), "leftover"),
)
@example(  # of two calls that found one queue full, the first in the sequence gets its place
    program=(
        Sequence(
            [
                Synchronize(host=2),
                Launch(1, 32, 16, stream=0, duration=4 * US),
                Launch(1, 32, 16, stream=1, duration=US),
                Launch(1, 32, 16, stream=2, duration=US),
                Launch(1, 32, 16, duration=US),
                Launch(1, 32, 16, duration=US, host=2),
            ]
        ),
        [0, 0, 0, 0, 500, 1000],
    ),
    device=ToyGpu(Toy(1, queues=2, grids=1, by_priority=True, places=1), "leftover"),
)
def test_hosts_call_and_wait_as_a_plain_simulation_says(
    program: tuple[Sequence, list[int]], device: ToyGpu
) -> None:
    check_against_plain_simulation(device, *program, gaps=True)


@settings(REPEATABLE, max_examples=examples(400))
@given(program=hosted_programs(toy_launches(), HOST_WORK), device=toy_gpus(st.integers(1, 8)))
def test_what_hosts_do_beside_launching_runs_as_a_plain_simulation_says(
    program: tuple[Sequence, list[int]], device: ToyGpu
) -> None:
    check_against_plain_simulation(device, *program, gaps=True)


@st.composite
def parted_programs(draw: st.DrawFn) -> tuple[Sequence, list[int]]:
    """Host functions among the work of two streams behind a kernel, and the gap of each call."""
    streams = st.sampled_from([0, 1])
    launches = st.builds(Launch, FEW_BLOCKS, st.just(32), st.just(16),
                         stream=streams | st.none(), duration=TOY_DURATION)  # fmt: skip
    functions = st.builds(HostFunction, TOY_DURATION, stream=streams)
    cuda = [st.builds(kind, st.just(0), streams) for kind in (RecordEvent, WaitEvent)]
    values = st.builds(WriteValue, st.just("a"), stream=streams)
    cuda += [st.builds(RecordEvent, st.just(1), streams, timing=st.just(True))]
    events = st.one_of(launches, launches, functions, functions, functions, values, *cuda)
    gates = [Launch(1, 32, 16, stream=stream, duration=30 * US) for stream in (0, 1)]
    program = Sequence([*gates, *draw(st.lists(events, min_size=6, max_size=14))])
    return program, [draw(GAPS) for _ in program]


@settings(REPEATABLE, max_examples=examples(400))
@given(program=parted_programs(), device=toy_gpus(st.integers(2, 8)))
def test_streams_share_the_stretches_of_a_queue_as_a_plain_simulation_says(
    program: tuple[Sequence, list[int]], device: ToyGpu
) -> None:
    # One queue: of several, the instant decides which one a call that waited takes.
    toy = dataclasses.replace(device.toy, queues=1)
    check_against_plain_simulation(dataclasses.replace(device, toy=toy), *program, gaps=True)


@st.composite
def called(draw: st.DrawFn) -> tuple[Sequence, dict[str, list[float]]]:
    """A program, and when its calls are made, as predictions take it."""
    if draw(st.booleans()):
        program, gaps = draw(hosted_programs(toy_launches(), HOST_WORK))
        return program, {"host": in_seconds(gaps)}
    program, times = draw(issued(way_programs() | programs(big_launches()), GAPS))
    return program, {"issue_times": in_seconds(times)}


@settings(REPEATABLE, max_examples=examples(600))
@given(program=called())
def test_launches_without_their_blocks_are_predicted_the_same(
    program: tuple[Sequence, dict[str, list[float]]],
) -> None:
    sequence, given = program
    of_blocks = predict(sequence, "h100", **given)
    of_launches = predict_launches(sequence, device("h100"), **given)
    for one, other in zip(of_blocks, of_launches, strict=True):
        assert len(other.smid) == 1
        assert span_of(0, one) == span_of(0, other)
        assert (one.limiter, one.hardware_queue) == (other.limiter, other.hardware_queue)
    if sequence.launches:
        assert of_blocks.makespan == of_launches.makespan
    assert of_blocks.issue_times == of_launches.issue_times
    for name in ("waits", "transfer_ns", "call_ns"):
        assert np.array_equal(getattr(of_blocks, name), getattr(of_launches, name))
    assert str(of_blocks.hang) == str(of_launches.hang)


def within_capacity(trace: Trace, name: str) -> bool:
    """Whether each SM holds what runs on it, at every instant at which a block starts."""
    spec, rows = device(name), trace.timeline
    launches = trace.sequence.launches
    needs = np.array(
        [
            (
                1,
                -(-launch.threads // 32),
                -(-launch.threads // 32) * launch.registers * 32,
                launch.shared_memory + spec.shared_memory_reserve,
            )
            for launch in launches
        ]
    ).reshape(-1, 4)[rows["launch"]]
    limits = (
        spec.blocks_per_sm,
        spec.warps_per_sm,
        spec.registers_per_sm,
        spec.shared_memory_configurations[-1],
    )
    for now in np.unique(rows["start_ns"]):
        there = (rows["start_ns"] <= now) & (now < rows["end_ns"] + spec.exit_latency_ns)
        for need, limit in zip(needs.T, limits, strict=True):
            if np.bincount(rows["sm"][there], weights=need[there]).max(initial=0) > limit:
                return False
    return True


@pytest.mark.parametrize("name", DEVICES)
@settings(REPEATABLE, max_examples=60)
@given(timed=issued(programs(big_launches()), st.sampled_from([0, 0, 1000, 10_000])))
def test_program_on_a_device_obeys_the_laws(name: str, timed: tuple[Sequence, list[int]]) -> None:
    program, issue_ns = timed
    trace = predict(program, name, issue_times=in_seconds(issue_ns))
    rows, spec = trace.timeline, device(name)
    completion_ns = spec.exit_latency_ns + spec.completion_latency_ns

    # every block exactly once, for its duration
    counts = [launch.blocks for launch in program.launches]
    assert rows["launch"].tolist() == np.repeat(np.arange(len(counts)), counts).tolist()
    assert rows["block"].tolist() == [block for count in counts for block in range(count)]
    durations = [launch.block_durations() for launch in program.launches]
    assert ((rows["sm"] >= 0) & (rows["sm"] < trace.device.sms)).all()
    for placement, seconds in zip(trace, durations, strict=True):
        assert placement.start_ns is not None
        assert placement.end_ns is not None
        assert seconds is not None
        assert (placement.end_ns - placement.start_ns == np.rint(seconds * 1e9)).all()
    assert within_capacity(trace, name)

    # a stream is first in, first out; an event comes after what it was recorded behind
    ended: dict[object, int] = {}
    recorded: dict[int, int] = {}
    number = -1
    for event in program:
        assert isinstance(event, Launch | RecordEvent | WaitEvent)
        before = max(ended.values(), default=0) if event.stream == LEGACY_STREAM else 0
        before = max(before, ended.get(LEGACY_STREAM, 0), ended.get(event.stream, 0))
        if isinstance(event, Launch):
            number += 1
            placement = trace[number]
            assert placement.start_ns is not None
            assert placement.end_ns is not None
            assert placement.start_ns.min() >= before
            key = ("own", number) if event.stream is None else event.stream
            ended[key] = int(placement.end_ns.max()) + completion_ns
        elif isinstance(event, RecordEvent):
            recorded[event.event] = before
        else:
            ended[event.stream] = max(before, recorded.get(event.event, 0))

    # a launch waits without a gap from when it reaches the GPU until its last block starts
    assert trace.waits is not None
    for k, called in enumerate(issue_ns):
        mine = trace.waits[trace.waits["launch"] == k]
        edges = [called + spec.launch_latency_ns, *mine["end_ns"].tolist()]
        assert mine["begin_ns"].tolist() == edges[:-1]
        assert (mine["end_ns"] > mine["begin_ns"]).all()
        start = trace[k].start_ns
        assert start is not None
        assert edges[-1] == start.max()

    # the same again
    again = predict(program, name, issue_times=in_seconds(issue_ns))
    assert (again.timeline == rows).all()
    assert (again.waits == trace.waits).all()


@pytest.mark.parametrize("name", DEVICES)
@settings(REPEATABLE, max_examples=60)
@given(launches=st.lists(big_launches(), max_size=8))
def test_first_instant_is_that_of_launches_that_are_held(name: str, launches: list[Launch]) -> None:
    some = [dataclasses.replace(x, stream=None, priority=0, duration=None) for x in launches]
    held = predict(Sequence(some), name)
    spec = dataclasses.replace(device(name), launch_switch_ns=0)
    timed = predict(Sequence([dataclasses.replace(x, duration=1.0) for x in some]), spec)
    for one, other in zip(held, timed, strict=True):
        assert other.start_ns is not None
        first = other.start_ns == spec.launch_latency_ns
        assert one.smid.tolist() == np.where(first, other.smid, -1).tolist()


@st.composite
def uneven_launches(draw: st.DrawFn) -> Launch:
    """Blocks end one by one, at many instants."""
    launch = draw(big_launches())
    ends = draw(st.lists(st.integers(0, 5), min_size=1, max_size=7))
    times = tuple(ends[block % len(ends)] * US for block in range(launch.blocks))
    return dataclasses.replace(launch, duration=times)


@pytest.mark.parametrize("name", [*DEVICES, "h200-contiguous-shared-memory"])
@settings(REPEATABLE, max_examples=25)
@given(program=programs(big_launches() | uneven_launches()))
def test_level_by_level_equals_algorithm_1_at_every_instant(name: str, program: Sequence) -> None:
    fast, literal = (predict(program, name, policy) for policy in ("ampere", "algorithm1"))
    np.testing.assert_array_equal(fast.timeline, literal.timeline)
    np.testing.assert_array_equal(fast.waits, literal.waits)
