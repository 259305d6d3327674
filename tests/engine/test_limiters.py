"""Why is a launch waiting? Every refusal has a cause in a word."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence as Events

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import KB, examples, gpu, last, launch, released, run
from tbsched import views
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Event, Launch
from tbsched.strategies import programs

ONE = gpu()

CAUSES: dict[str, tuple[list[Event], Launch]] = {
    "slots": ([launch(16)], launch()),
    "warps": ([launch(1, 32, carveout=100), launch(1, 13)], launch(1, 4)),
    "registers": ([launch(1, 8, registers=248, carveout=100)], launch(registers=128)),
    "shared_memory": ([launch(shared_memory=50 * KB)], launch(shared_memory=50 * KB)),
    "configuration": ([launch()], launch(shared_memory=KB)),
    "local_memory": ([launch()], launch(local_memory=2 * KB)),
    "queue": ([launch(17)], launch()),
    "stream": ([launch(stream=0)], launch(stream=0)),
}


@pytest.mark.parametrize(("cause", "before", "waiting"), [(k, *v) for k, v in CAUSES.items()])
def test_cause_of_a_refusal(cause: str, before: Events[Event], waiting: Launch) -> None:
    assert last(ONE, *before, waiting).limiter == cause


@pytest.mark.parametrize("before", [before for before, _ in CAUSES.values()])
def test_launch_placed_whole_has_none(before: Events[Event]) -> None:
    assert last(gpu(82), *before).limiter is None


@pytest.mark.parametrize(("small", "cause"), [(1, "slots"), (3, "configuration")])
def test_cause_is_what_refuses_on_most_sms(small: int, cause: str) -> None:
    """So many of four SMs are configured to 16 KB; the others are full of blocks that need 32."""
    four = gpu(4, sms_per_tpc=1)
    full = launch(16 * (4 - small), shared_memory=KB)
    assert last(four, launch(small), full, launch(shared_memory=KB)).limiter == cause


def test_cause_is_of_the_moment_of_the_launch_and_stays() -> None:
    trace = run(ONE, launch(16), launch(), *released(0))
    assert trace[1].limiter == "slots"


@pytest.mark.parametrize(
    ("asked", "room", "limiter"),
    [
        (launch(), 16, "slots"),
        (launch(1, 4), 12, "warps"),
        (launch(1, 4, registers=128), 4, "registers"),
        (launch(shared_memory=49 * KB), 2, "shared_memory"),
    ],
)
def test_capacity_says_how_many_blocks_an_sm_has_room_for_and_what_binds(
    asked: Launch, room: int, limiter: str
) -> None:
    trace = run(gpu(2), asked)
    assert trace.capacities is not None
    (capacity,) = trace.capacities()
    assert capacity.blocks.tolist() == [room, room]
    assert capacity.limiter == (limiter, limiter)


def test_capacity_is_that_before_the_launch_s_own_blocks() -> None:
    trace = run(gpu(2), launch(3), launch(1))
    assert trace.capacities is not None
    assert [row.blocks.tolist() for row in trace.capacities()] == [[16, 16], [14, 15]]


def test_capacity_is_none_where_the_gpu_as_a_whole_refuses() -> None:
    trace = run(gpu(2), launch(), launch(local_memory=2 * KB))
    assert trace.capacities is not None
    refused = trace.capacities()[1]
    assert refused.blocks.tolist() == [0, 0]
    assert refused.limiter == ("local_memory", "local_memory")


# -- several at once ------------------------------------------------------------------------------

# Half of an SM's warps, and nearly half of its registers and shared memory.
HALF = launch(1, 24, registers=40, shared_memory=47 * KB)
FULL = {"carveout": 100}
AT_ONCE: dict[str, tuple[list[Event], Launch]] = {
    "warps registers shared_memory": ([HALF, HALF], HALF),
    "warps slots registers shared_memory": (
        [launch(16, 3, registers=40)],
        launch(1, 3, registers=40),
    ),
    "registers shared_memory": (
        [launch(1, 8, registers=248, shared_memory=60 * KB, **FULL)],
        launch(1, registers=128, shared_memory=50 * KB, **FULL),
    ),
    "configuration slots": ([launch(16)], launch(shared_memory=KB)),
}


@pytest.mark.parametrize(("causes", "before", "waiting"), [(k, *v) for k, v in AT_ONCE.items()])
def test_all_causes_of_a_refusal(causes: str, before: Events[Event], waiting: Launch) -> None:
    trace = run(ONE, *before, waiting)
    first, *others = causes.split()
    assert trace[len(before)].limiter == first
    assert trace.limiters[-1] == (first, *others)
    assert views.data(trace)["launches"][-1]["limiters"] == [first, *others]


@pytest.mark.parametrize(("causes", "before", "waiting"), [(k, *v) for k, v in AT_ONCE.items()])
def test_all_causes_of_a_wait_in_time(causes: str, before: list[Launch], waiting: Launch) -> None:
    timed = [dataclasses.replace(one, duration=1e-3) for one in (*before, waiting)]
    trace = tb.predict(tb.Sequence(timed), ONE)
    first, *others = causes.split()
    assert trace[len(before)].limiter == first
    assert trace.limiters == (*[()] * len(before), (first, *others))
    assert views.data(trace)["launches"][-1]["limiters"] == [first, *others]
    words = {"shared_memory": "shared memory", "slots": "thread block slots"}
    also = " and ".join(words.get(other, other) for other in others)
    assert f", and for {also}. " in trace.explain(len(before))


def test_a_wait_behind_another_launch_has_one_cause() -> None:
    three = [launch(1, 32, duration=1e-3) for _ in range(3)]
    trace = tb.predict(tb.Sequence(three), ONE)
    assert trace.limiters[2] == ("queue",)
    assert ", and for" not in trace.explain(2)


@settings(max_examples=examples(200), deadline=None)
@given(programs(ONE.name))
def test_the_first_of_the_causes_is_the_limiter(program: tb.Sequence) -> None:
    trace = tb.predict(program, ONE.name)
    for placement, causes in zip(trace, trace.limiters, strict=True):
        assert causes[:1] == (() if placement.limiter is None else (placement.limiter,))
        assert len({*causes}) == len(causes)


def plenty(spec: DeviceSpec, causes: set[str]) -> DeviceSpec:
    """The device with so much of some resources of an SM that they never bind."""
    changes: dict[str, object] = {}
    if "slots" in causes:
        changes["blocks_per_sm"] = 1024
    if "registers" in causes:
        changes["registers_per_sm"] = 16 * spec.registers_per_sm
    if "shared_memory" in causes:
        sizes = spec.shared_memory_configurations
        changes["shared_memory_configurations"] = (*sizes, 16 * sizes[-1])
    return dataclasses.replace(spec, name="plenty", **changes)  # type: ignore[arg-type]


OTHERS = {"slots", "registers", "shared_memory"}
BLOCKS = st.builds(
    launch, st.integers(1, 4), st.integers(1, 16), registers=st.sampled_from([16, 32, 64, 96, 128]),
    shared_memory=st.sampled_from([0, KB, 7 * KB, 15 * KB, 31 * KB]),
)  # fmt: skip


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(BLOCKS, max_size=4), BLOCKS)
def test_each_of_the_causes_alone_keeps_a_block_out(before: list[Launch], asked: Launch) -> None:
    """Where all memory is one pool, an SM without an end of all but one cause takes no more.

    The first is what binds in the tightest processing block: warps in one and registers in another
    can bind together where neither does alone.
    """
    pooled = dataclasses.replace(
        ONE.mechanisms, shared_memory="pooled", shared_memory_configuration=False
    )
    spec = dataclasses.replace(ONE, mechanisms=pooled)
    kept: list[Launch] = []
    for one in before:
        kept += [one] if last(spec, *kept, one).limiter is None else []
    trace = run(spec, *kept, asked)
    assert trace.capacities is not None
    room = trace.capacities()[-1]
    (causes,) = room.limiters
    for cause in causes[1:]:
        others = (OTHERS & {*causes}) - {cause}
        if others:
            more = run(plenty(spec, others), *kept, asked)
            assert more.capacities is not None
            assert more.capacities()[-1].blocks.tolist() == room.blocks.tolist()
    if OTHERS.issuperset(causes):
        free = run(plenty(spec, {*causes}), *kept, asked)
        assert free.capacities is not None
        assert free.capacities()[-1].blocks[0] > room.blocks[0]


def test_capacity_names_all_that_refuse_one_more() -> None:
    full = tb.Launch(132, 1024, 64, 200 * KB)
    found = tb.capacity(tb.Launch(1, 1024, 64, 100 * KB), "h200", beside=[full])
    assert {row.causes for row in found.limits} == {("registers", "shared_memory")}
    assert found.limits[0].cause == found.limits[0].causes[0]
    assert "too little shared memory" in str(found)
    assert views.data(found)["limits"][0]["causes"] == list(found.limits[0].causes)
    asked = tb.coresident([full, tb.Launch(1, 1024, 64, 100 * KB)], "h200", fixes=False)
    assert asked.limits[0].causes == found.limits[0].causes


def test_a_recorded_trace_knows_the_first_alone() -> None:
    trace = run(ONE, HALF, HALF, HALF)
    read = tb.Trace(trace.sequence, trace.device, trace.placements)
    assert read.limiters == ((), (), ("warps",))
