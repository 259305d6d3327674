"""Whatever happens to a run, in whatever way it was launched, its blocks leave."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import pytest

import tbsched as tb
from gpu.ways.launching import free, needs_dependent_launches, parts, run
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu


def long_running(gpu: Gpu, way: str) -> tb.Sequence:
    full = tb.Launch(2 * gpu.info.sms, 1024, 32, duration=50.0, stream=0)
    if way == "dependent":
        needs_dependent_launches(gpu)
        waits = run(4, 50.0, stream=0, programmatic=True, trigger=0.0, memory_wait=0.0)
        return tb.Sequence([run(4, 50.0, stream=0, trigger=0.0), waits, waits, full])
    if way == "graph":
        nodes = [replace(full, stream=None)] * 4
        graph = tb.Graph(nodes, [(0, 1), (1, 2), (1, 3)])
        return tb.Sequence([graph.launch(0), graph.launch(0), graph.launch(1)])
    if way == "cooperative":
        return tb.Sequence([run(seconds=50.0), replace(full, cooperative=True)] * 2)
    part = parts(min_sms=64)[0]
    launch = tb.Launch(len(part), 1024, 32, duration=50.0, partition=part, stream=1)
    return tb.Sequence(
        [full, launch, replace(launch, completion_event=1), tb.WaitEvent(1, 0), full]
    )


@pytest.mark.parametrize("how", ["deadline", "interrupt"])
@pytest.mark.parametrize("way", ["dependent", "graph", "cooperative", "partition"])
def test_blocks_are_ended(hopper: Gpu, way: str, how: str) -> None:
    seq = long_running(hopper, way)
    begin = time.monotonic()
    if how == "deadline":
        with pytest.raises(tb.DeadlineExceeded, match="has left"):
            hopper.observe(seq, deadline=0.3)
    else:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            hopper.observe(seq)
    print(f"{time.monotonic() - begin:.2f} s")
    assert time.monotonic() - begin < 2
    free(hopper)


def test_a_held_cooperative_launch_that_waits_is_ended(gpu: Gpu) -> None:
    one = tb.Launch(1, 1024, 32)
    most = gpu._gpu.resident(one) * gpu.info.sms
    seq = tb.Sequence([one, replace(one, blocks=most, cooperative=True), one])
    with pytest.raises(tb.DeadlineExceeded):
        gpu.observe(seq, settle=5.0, deadline=0.3)
    free(gpu)
