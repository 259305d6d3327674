"""Launches that never meet though there is room: streams, hardware queues, memory, grids."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

import tbsched as tb
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu

ONE = tb.Launch(1, 32, 16)
MOST_GRIDS = 128


def meet(gpu: Gpu, *launches: tb.Launch, groups: list[list[int]] | None = None) -> tb.Meeting:
    found = tb.meet(tb.Sequence(launches), groups, gpu=gpu)
    print(found)
    return found


def test_launches_of_one_stream_never_meet(gpu: Gpu) -> None:
    first = replace(ONE, stream=0)
    assert meet(gpu, first, replace(ONE, stream=1))
    assert meet(gpu, first, first).missing == {1: 1}


def test_who_needs_more_local_memory_than_any_before_waits_for_an_idle_gpu(gpu: Gpu) -> None:
    large = replace(ONE, local_memory=64 * 1024)
    assert meet(gpu, ONE, large).missing == {1: 1}
    assert meet(gpu, large, ONE).met == (True,)
    assert meet(gpu, ONE).met == (True,)


def test_so_many_grids_meet_and_no_more(gpu: Gpu) -> None:
    assert meet(gpu, *[ONE] * MOST_GRIDS).met == (True,)
    assert meet(gpu, *[ONE] * (MOST_GRIDS + 1)).missing == {MOST_GRIDS: 1}


def test_a_cooperative_launch_waits_until_all_of_it_fits(gpu: Gpu) -> None:
    one = tb.Launch(1, 1024, 32)
    most = gpu._gpu.resident(one) * gpu.info.sms
    whole = replace(one, blocks=most, cooperative=True)
    assert meet(gpu, whole).met == (True,)
    assert meet(gpu, ONE, whole).missing == {1: most}


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
