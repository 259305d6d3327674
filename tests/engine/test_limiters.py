"""Why is a launch waiting? Every refusal has a cause in a word."""

from __future__ import annotations

from collections.abc import Sequence as Events

import pytest

from helpers import KB, gpu, last, launch, released, run
from tbsched.program.sequence import Event, Launch

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
