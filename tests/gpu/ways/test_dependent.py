"""Do dependent launches start, wait and tell on the real GPU as they should?"""

from __future__ import annotations

import pytest

import tbsched as tb
from gpu.ways.launching import LONG, ends, needs_dependent_launches, observed, run, starts
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu


def test_a_dependent_launch_starts_when_all_blocks_have_triggered(gpu: Gpu) -> None:
    needs_dependent_launches(gpu)
    for threads in (32, 33, 1024):
        for trigger in (0.0, 0.0005, 0.0015):
            primary = tb.Launch(
                gpu.info.sms, threads, 32, carveout=100, stream=0, duration=LONG, trigger=trigger
            )
            # With a carveout of its own it might wait for another configuration.
            trace = observed(gpu, primary, run(carveout=100, stream=0, programmatic=True))
            late = starts(trace)[1] - starts(trace)[0]
            print(f"{threads} threads: {trigger * 1e6:.0f} us: starts {late / 1e3:.1f} us later")
            assert trigger * 1e9 - 1000 <= late < trigger * 1e9 + 200_000


def test_one_block_that_has_not_triggered_is_waited_for(gpu: Gpu) -> None:
    needs_dependent_launches(gpu)
    durations = (LONG, 0.5 * LONG)
    primary = tb.Launch(2, 64, 32, stream=0, duration=durations, trigger=0.75 * LONG)
    trace = observed(gpu, primary, run(stream=0, programmatic=True))
    late = starts(trace)[1] - starts(trace)[0]
    assert 0.75 * LONG * 1e9 - 1000 <= late < 0.9 * LONG * 1e9


def test_without_a_trigger_a_dependent_launch_waits_for_the_end(gpu: Gpu) -> None:
    needs_dependent_launches(gpu)
    for primary in (run(4, stream=0), run(4, stream=0, trigger=2 * LONG)):
        trace = observed(gpu, primary, run(stream=0, programmatic=True))
        assert starts(trace)[1] >= ends(trace)[0] - 1000


def test_a_block_waits_for_its_primary_and_then_runs_the_rest(gpu: Gpu) -> None:
    needs_dependent_launches(gpu)
    primary = run(8, stream=0, trigger=0.0)
    waits = run(8, 0.001, stream=0, programmatic=True, memory_wait=0.0004)
    trace = observed(gpu, primary, waits)
    end_ns = trace[1].end_ns
    assert end_ns is not None
    after = end_ns - ends(trace)[0]
    print(f"ends {after.min() / 1e3:.1f} to {after.max() / 1e3:.1f} us after the primary")
    assert starts(trace)[1] < ends(trace)[0]
    assert after.min() >= 600_000 - 1000
    assert after.max() < 700_000


def test_a_chain_of_three(gpu: Gpu) -> None:
    needs_dependent_launches(gpu)
    for trigger in (0.0, 0.0006):
        chain = run(stream=0, programmatic=True, trigger=trigger, memory_wait=0.0003, seconds=0.001)
        trace = observed(gpu, run(stream=0, trigger=0.0), chain, run(stream=0, programmatic=True))
        late = starts(trace)[2] - ends(trace)[0]
        print(
            f"trigger {trigger * 1e6:.0f} us: the third starts {late / 1e3:.1f} us after the first"
        )
        assert (late < 0) is (trigger < 0.0003)


def test_the_dependent_probe_is_patched_alike(gpu: Gpu) -> None:
    needs_dependent_launches(gpu)
    for registers in (16, 40, 200):
        launch = tb.Launch(1, 128, registers, 0, 512, duration=1e-5, stream=0, trigger=0.0)
        assert gpu._gpu.kernel_size(launch) == (registers, 512)
        assert observed(gpu, launch)[0].placed == 1


def test_a_completion_event_happens_when_the_launch_has_its_turn(gpu: Gpu) -> None:
    """Not when its blocks have started, whatever CUDA's documentation says."""
    resident = gpu._gpu.resident(tb.Launch(1, 1024, 32)) * gpu.info.sms
    more = tb.Launch(resident + 1, 1024, 32, stream=0, duration=LONG, completion_event=0)
    urgent = run(stream=1, priority=-1)
    trace = observed(gpu, run(stream=0), more, tb.WaitEvent(0, 1), urgent)
    print(f"{(starts(trace)[2] - starts(trace)[1]) / 1e3:.1f} us after the first start")
    assert starts(trace)[2] >= ends(trace)[0]
    assert starts(trace)[2] <= ends(trace)[1]
