"""Many sequences in one call, against a driver that emulates a GPU of four SMs."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tbsched as tb
from helpers import Fake, smids
from tbsched.launcher.observe import AHEAD, Gpu

pytest.importorskip("tbsched._launcher", reason="built without nvcc")

SMS = 4
FULL = tb.Launch(2 * SMS, 1024, 32)
ONE = tb.Sequence([tb.Launch(1, 32, 16)])
FEW = [
    tb.Sequence([tb.Launch(1 + number % 7, 32, 16), tb.Release(0), tb.Launch(3, 64, 24)])
    for number in range(50)
]


def still_works(gpu: Gpu) -> bool:
    return gpu.observe(tb.Sequence([FULL]))[0].placed == FULL.blocks


def test_each_has_the_trace_that_observe_gives_in_order(gpu: Gpu) -> None:
    traces = list(gpu.observe_many(FEW))
    assert [trace.sequence for trace in traces if isinstance(trace, tb.Trace)] == FEW
    for trace, seq in zip(traces[:10], FEW, strict=False):
        assert isinstance(trace, tb.Trace)
        assert smids(trace) == smids(gpu.observe(seq))


def test_no_sequences_give_no_traces(gpu: Gpu) -> None:
    assert list(gpu.observe_many([])) == []


def test_an_endless_source_is_taken_as_the_gpu_comes_to_it(gpu: Gpu) -> None:
    taken = 0

    def endless() -> Iterator[tb.Sequence]:
        nonlocal taken
        while True:
            taken += 1
            yield ONE

    traces = gpu.observe_many(endless())
    assert len(list(itertools.islice(traces, 5))) == 5
    traces.close()
    assert taken == AHEAD + 5
    assert still_works(gpu)


def test_nothing_is_loaded_or_allocated_again(gpu: Gpu, knobs: Fake) -> None:
    list(gpu.observe_many(FEW))
    kept = ("libraries", "streams", "host_allocations")
    before = [knobs[key] for key in kept]
    list(gpu.observe_many(FEW))
    assert [knobs[key] for key in kept] == before


def test_a_doubtful_sequence_does_not_end_the_others(gpu: Gpu, knobs: Fake) -> None:
    full = [tb.Launch(2 * SMS - 1, 1024, 32), tb.Launch(1, 1024, 32)]
    doubtful = tb.Sequence([*full, tb.Launch(1, 32, 16), tb.Release(1)])
    knobs["doubtful"] = 1
    first, second, third = gpu.observe_many([ONE, doubtful, ONE])
    assert isinstance(first, tb.Trace)
    assert isinstance(second, tb.UnstableMeasurement)
    assert isinstance(third, tb.Trace)


def test_a_sequence_past_its_deadline_does_not_end_the_others(gpu: Gpu, knobs: Fake) -> None:
    knobs["mute"] = 1
    threading.Timer(0.4, lambda: knobs.__setitem__("mute", 0)).start()
    first, second = gpu.observe_many([ONE, ONE], deadline=0.2)
    assert isinstance(first, tb.DeadlineExceeded)
    assert isinstance(second, tb.Trace | tb.DeadlineExceeded)
    assert still_works(gpu)


def test_a_refused_sequence_ends_it_behind_those_before(gpu: Gpu) -> None:
    traces = gpu.observe_many([ONE, ONE, tb.Sequence([tb.Launch(1, 32, 11)]), ONE])
    assert isinstance(next(traces), tb.Trace)
    assert isinstance(next(traces), tb.Trace)
    with pytest.raises(ValueError, match=r"Launch\.registers: 11"):
        next(traces)
    assert still_works(gpu)


def test_what_is_no_sequence_is_said(gpu: Gpu) -> None:
    with pytest.raises(TypeError, match="a Sequence is needed"):
        list(gpu.observe_many([[tb.Launch(1, 32, 16)]]))  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["deadline", "settle"])
def test_times_must_be_positive_and_finite(gpu: Gpu, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: 0"):
        list(gpu.observe_many([ONE], **{name: 0.0}))  # type: ignore[arg-type]


def test_interrupt_releases_everything_and_keeps_what_was_seen(gpu: Gpu) -> None:
    # The last of them is held for as long as the settling time.
    sequences = [*itertools.repeat(ONE, AHEAD + 2), tb.Sequence([FULL, FULL])]
    seen: list[object] = []

    def look() -> None:
        for outcome in gpu.observe_many(sequences, settle=9.0):
            seen.append(outcome)
            if len(seen) == AHEAD + 2:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        look()
    assert time.monotonic() - begin < 3
    assert len(seen) == AHEAD + 2
    assert still_works(gpu)


def test_an_exception_between_two_sequences_releases_everything(gpu: Gpu) -> None:
    # Held for as long as the settling time, while the third is looked at.
    held = tb.Sequence([FULL, FULL])

    def raising() -> Iterator[tb.Sequence]:
        yield from (ONE, held)
        raise OSError("no more")

    begin = time.monotonic()
    with pytest.raises(OSError, match="no more"):
        list(gpu.observe_many(raising(), settle=5.0))
    assert still_works(gpu)
    assert time.monotonic() - begin < 4


def test_observing_in_between_waits_for_its_turn(gpu: Gpu) -> None:
    traces = gpu.observe_many(FEW)
    next(traces)
    assert still_works(gpu)
    assert len(list(traces)) == len(FEW) - 1


def test_a_driver_error_ends_it(gpu: Gpu, knobs: Fake) -> None:
    knobs.fail("cuLaunchKernelEx")
    with pytest.raises(tb.CudaError, match="cuLaunchKernelEx"):
        list(gpu.observe_many([ONE, ONE]))
    assert still_works(gpu)


def test_time_is_accounted_for(gpu: Gpu) -> None:
    before = gpu.time_spent()
    list(gpu.observe_many([tb.Sequence([FULL, FULL]), tb.Sequence([FULL, tb.Release(0)])]))
    spent = {key: value - before[key] for key, value in gpu.time_spent().items()}
    assert spent["runs"] >= 2
    assert spent["launch"] >= spent["settle"] >= 0.003
    assert all(value > 0 for value in spent.values())


def test_module_level_and_at_the_end_of_a_process(fake: Path) -> None:
    code = (
        "import tbsched as tb\n"
        "full = tb.Launch(8, 1024, 32); stuck = tb.Sequence([full, full])\n"
        "fast = tb.Sequence([full])\n"
        "traces = tb.observe_many([fast, stuck], settle=9.0)\n"
        "print(next(traces)[0].placed)\n"
    )
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TBSCHED_LIBCUDA": str(fake), "TBSCHED_LIBNVML": str(fake)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["8"], done.stderr
    assert done.returncode == 0
    assert time.monotonic() - begin < 8
