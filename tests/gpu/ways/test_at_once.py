"""Cooperative launches, non-blocking streams and priorities on the real GPU."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb
from gpu.ways.launching import LONG, ends, observed, parts, run, starts
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu


def test_a_cooperative_launch_is_all_or_nothing(gpu: Gpu) -> None:
    one = tb.Launch(1, 1024, 32)
    most = gpu._gpu.resident(one) * gpu.info.sms
    together = replace(one, blocks=most, cooperative=True)
    begin = time.monotonic()
    trace = observed(gpu, one, together, tb.Release(0))
    print(f"{(time.monotonic() - begin) * 1e3:.1f} ms; {trace[1].placed} blocks before the release")
    assert trace[1].placed == 0
    assert trace[1].final_smid is not None
    assert (trace[1].final_smid >= 0).all()
    with pytest.raises(ValueError, match=r"Launch\.cooperative: .* holds at most"):
        observed(gpu, replace(together, blocks=most + 1))


def test_a_cooperative_launch_in_a_partition(hopper: Gpu) -> None:
    part = parts(min_sms=32)[1]
    together = tb.Launch(2 * len(part), 1024, 32, cooperative=True, partition=part)
    assert observed(hopper, together)[0].placed == together.blocks
    with pytest.raises(ValueError, match=r"Launch\.cooperative: .* the partition of 32 SMs"):
        observed(hopper, replace(together, blocks=2 * len(part) + 1))


def test_cooperative_clusters(hopper: Gpu) -> None:
    launch = tb.Launch(4, 1024, 32, cluster=4)
    most = 4 * hopper._gpu.resident(launch)
    together = replace(launch, blocks=most, cooperative=True)
    assert observed(hopper, together)[0].placed == most
    with pytest.raises(ValueError, match=rf"holds at most {most} "):
        observed(hopper, replace(together, blocks=most + 4))


def test_non_blocking_streams_leave_the_legacy_stream_alone(gpu: Gpu) -> None:
    trace = observed(
        gpu,
        run(stream=1, non_blocking=True),
        run(stream="legacy"),
        run(stream=2, non_blocking=True),
        run(stream=3),
    )
    assert trace.concurrent(0, 1)
    assert trace.concurrent(1, 2)
    assert starts(trace)[3] >= ends(trace)[1]


def test_all_levels_of_priority_are_told_apart(gpu: Gpu) -> None:
    full = tb.Launch(2 * gpu.info.sms, 1024, 32, duration=LONG)
    least = 1 - tb.device("gpu").priority_levels
    levels = [*range(least + 1, 1), least][::-1]
    trace = observed(gpu, full, *(replace(full, priority=level) for level in levels))
    found = [levels[k] for k in np.argsort(starts(trace)[1:])]
    print(f"priorities {least}..0 start in the order {found}")
    assert found == sorted(levels)


def test_a_priority_outside_the_range_is_the_nearest_in_it(gpu: Gpu) -> None:
    """-100 is no more urgent than -5, which is issued before it."""
    full = tb.Launch(2 * gpu.info.sms, 1024, 32, duration=LONG)
    least = 1 - tb.device("gpu").priority_levels
    trace = observed(gpu, full, *(replace(full, priority=level) for level in (least, -100)))
    assert starts(trace)[1] < starts(trace)[2]
