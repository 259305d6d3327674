"""Launches that never meet though there is room: streams, hardware queues, memory, grids, hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence as ListOf
from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu

FOREVER = 1.0
STEP = 1e-3  # seconds between launches
MOST_GRIDS = 128
HELD = tb.Launch(1, 32, 16)
ONE = replace(HELD, duration=FOREVER)
BEHIND = tb.Graph([ONE, ONE], edges=[(0, 1)])


def meet(gpu: Gpu, *launches: tb.Launch, groups: list[list[int]] | None = None) -> tb.Meeting:
    return tb.meet(tb.Sequence(launches), groups, gpu=gpu)


def on(*streams: int | str) -> list[tb.Launch]:
    return [replace(ONE, stream=stream) for stream in streams]  # type: ignore[arg-type]


def never_start(events: ListOf[object]) -> dict[int, int]:
    """The launches that wait until others have ended in the model, and how many blocks."""
    sequence = tb.Sequence(events)  # type: ignore[arg-type]
    times = [STEP * number for number in range(len(sequence.launches))]
    predicted = tb.predict(sequence, "h200", issue_times=times)
    found = {}
    for number, placement in enumerate(predicted):
        assert placement.start_ns is not None
        late = int(np.count_nonzero(placement.start_ns > 0.9e9 * FOREVER))
        if late:
            found[number] = late
    return found


CASES = {
    "apart": (on(0, 1), {}),
    "one stream": (on(0, 1, 0), {2: 1}),
    "behind the legacy stream": (on("legacy", 1), {1: 1}),
    "the legacy stream": (on(1, "legacy"), {1: 1}),
    "non-blocking": ([*on("legacy"), replace(ONE, stream=1, non_blocking=True)], {}),
    "an event": (
        [*on(0), tb.RecordEvent(0, stream=0), tb.WaitEvent(0, stream=1), *on(1)],
        {1: 1},
    ),
    "a queue that streams share": (on(*range(33), 0, 32), {33: 1, 34: 1}),
    "so many grids": (on(*range(32)) + [ONE] * (MOST_GRIDS - 32), {}),
    "nodes of a graph": ([BEHIND.launch(stream=0)], {1: 1}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_launch_that_never_gets_to_the_scheduler(hopper: Gpu, name: str) -> None:
    events, missing = CASES[name]
    assert never_start(events) == missing
    sequence = tb.Sequence(events)  # type: ignore[arg-type]
    found = tb.meet(sequence, gpu=hopper)
    print(found.met, found.missing)
    assert found.missing == missing
    times = [STEP * number for number in range(len(sequence.launches))]
    if not any(isinstance(event, tb.GraphLaunch) for event in sequence):
        assert tb.meet(sequence, gpu=hopper, issue_times=times).missing == missing


def test_a_host_that_waits_never_makes_the_next_call(gpu: Gpu) -> None:
    found = tb.meet(tb.Sequence([ONE, tb.Synchronize(), ONE]), gpu=gpu)
    assert found.missing == {1: 1}


def test_blocks_that_leave_make_room_for_those_that_meet(gpu: Gpu) -> None:
    most = gpu._gpu.resident(tb.Launch(1, 1024, 32)) * gpu.info.sms
    full = tb.Launch(most, 1024, 32, duration=FOREVER)
    leaves = replace(full, duration=5e-4)
    assert tb.meet(tb.Sequence([leaves, full]), [[1]], gpu=gpu).met == (True,)
    half = replace(full, duration=tuple([5e-4] * (most // 2) + [FOREVER] * (most - most // 2)))
    found = tb.meet(tb.Sequence([half, full]), [[1]], gpu=gpu)
    assert found.missing == {1: most - most // 2}


def test_launches_of_one_stream_never_meet(gpu: Gpu) -> None:
    first = replace(HELD, stream=0)
    assert meet(gpu, first, replace(HELD, stream=1))
    assert meet(gpu, first, first).missing == {1: 1}


@pytest.mark.parametrize("one", [HELD, ONE])
def test_who_needs_more_local_memory_than_any_before_waits_for_an_idle_gpu(
    gpu: Gpu, one: tb.Launch
) -> None:
    large = replace(one, local_memory=64 * 1024)
    assert meet(gpu, one, large).missing == {1: 1}
    assert meet(gpu, large, one).met == (True,)
    assert meet(gpu, one).met == (True,)


def test_so_many_grids_meet_and_no_more(gpu: Gpu) -> None:
    assert meet(gpu, *[HELD] * MOST_GRIDS).met == (True,)
    assert meet(gpu, *[HELD] * (MOST_GRIDS + 1)).missing == {MOST_GRIDS: 1}


def test_a_cooperative_launch_waits_until_all_of_it_fits(gpu: Gpu) -> None:
    one = tb.Launch(1, 1024, 32)
    most = gpu._gpu.resident(one) * gpu.info.sms
    whole = replace(one, blocks=most, cooperative=True)
    assert meet(gpu, whole).met == (True,)
    assert meet(gpu, HELD, whole).missing == {1: most}


QUEUES = """
import tbsched as tb
from tbsched.launcher.observe import Gpu
one = [tb.Launch(1, 32, 16, stream=stream) for stream in (0, 0, 1)]
with Gpu(0) as gpu:
    print(tb.meet(tb.Sequence(one), [[0], [2]], gpu=gpu).met)
"""


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("connections", ["1", "32"])
def test_a_launch_behind_one_that_waits_in_its_hardware_queue(connections: str) -> None:
    environment = {"CUDA_DEVICE_MAX_CONNECTIONS": connections, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", QUEUES],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == f"(True, {connections != '1'})\n", done.stderr
