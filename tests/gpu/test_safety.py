"""Whatever happens to a run, the GPU is free for the next one right away."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import tbsched as tb
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu

# Held up for the whole of a run: the second launch waits for the first to be released, which the
# long settling time puts off.
STUCK = tb.Sequence([tb.Launch(1, 32, 16, stream=0), tb.Launch(1, 32, 16, stream=0)])


def observes_at_once(gpu: Gpu) -> None:
    begin = time.monotonic()
    trace = gpu.observe(tb.Sequence([tb.Launch(gpu.info.sms, 1024, 32)]))
    assert trace[0].placed == gpu.info.sms
    assert time.monotonic() - begin < 1


def test_interrupt(gpu: Gpu) -> None:
    gpu.observe(STUCK)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        gpu.observe(STUCK, settle=5.0)
    assert time.monotonic() - begin < 2
    observes_at_once(gpu)


def test_interrupt_of_many(gpu: Gpu) -> None:
    observes_at_once(gpu)
    fast = tb.Sequence([tb.Launch(gpu.info.sms, 64, 32)])
    seen: list[object] = []

    def look() -> None:
        for outcome in gpu.observe_many([*[fast] * 100, STUCK], settle=5.0):
            seen.append(outcome)

    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        look()
    assert time.monotonic() - begin < 2
    assert len(seen) == 100
    observes_at_once(gpu)


def test_many_that_are_dropped_on_the_way(gpu: Gpu) -> None:
    outcomes = gpu.observe_many([tb.Sequence([tb.Launch(1, 32, 16)]), STUCK, STUCK], settle=5.0)
    assert isinstance(next(outcomes), tb.Trace)
    outcomes.close()
    observes_at_once(gpu)


def test_deadline(gpu: Gpu) -> None:
    begin = time.monotonic()
    with pytest.raises(tb.DeadlineExceeded, match="launch 1: 0 of 1 blocks started"):
        gpu.observe(STUCK, settle=5.0, deadline=0.3)
    assert time.monotonic() - begin < 2
    observes_at_once(gpu)


def test_exception_from_a_signal_handler(gpu: Gpu) -> None:
    class OwnError(Exception):
        pass

    def handler(*_: object) -> None:
        raise OwnError

    former = signal.signal(signal.SIGUSR1, handler)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        with pytest.raises(OwnError):
            gpu.observe(STUCK, settle=5.0)
    finally:
        signal.signal(signal.SIGUSR1, former)
    observes_at_once(gpu)


def test_blocked_launch_call_and_deadline(gpu: Gpu) -> None:
    held = tb.Launch(1, 32, 16)
    large = tb.Launch(1, 32, 16, local_memory=32768)
    # The call blocks only if nothing needed so much local memory before.
    with contextlib.suppress(tb.DeadlineExceeded):
        gpu.observe(tb.Sequence([held, large]), settle=5.0, deadline=0.3)
    observes_at_once(gpu)


def test_another_process_is_noticed(gpu: Gpu) -> None:
    code = (
        "import tbsched as tb; from tbsched.launcher.observe import Gpu\n"
        "gpu = Gpu(0); long = tb.Launch(2 * gpu.info.sms, 1024, 32, duration=30.0)\n"
        "print('ready', flush=True)\n"
        "gpu.observe(tb.Sequence([long]))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        timed = tb.Sequence([tb.Launch(gpu.info.sms, 1024, 32, duration=0.02)])
        held = tb.Sequence([tb.Launch(2 * gpu.info.sms, 1024, 32), tb.Launch(1, 32, 16)])
        for seq in (timed, held):
            with pytest.raises(tb.SharedGpu, match="another process uses this GPU") as caught:
                gpu.observe(seq, settle=0.02)
            print(caught.value)
        child.kill()
    observes_at_once(gpu)


def test_two_campaigns_at_once_report_nothing(gpu: Gpu) -> None:
    campaign = {"level": "exact", "max_seconds": 6.0, "max_examples": 10**6, "progress": False}
    code = (
        "import tbsched as tb; from tbsched.launcher.observe import Gpu\n"
        "gpu = Gpu(0); print('ready', flush=True)\n"
        f"report = tb.fuzz(gpu, 'h200', **{campaign!r})\n"
        "print(report.ended, len(report.counterexamples))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        report = tb.fuzz(gpu, "h200", **campaign)  # type: ignore[arg-type]
        *ended, found = child.stdout.read().split()
    print(report.ended, ended)
    assert not report.counterexamples
    assert found == "0"
    assert "another process" in (report.ended, " ".join(ended))


@pytest.mark.usefixtures("gpu")
def test_killed_process() -> None:
    code = (
        "import tbsched as tb; from tbsched.launcher.observe import Gpu\n"
        "gpu = Gpu(0); full = tb.Launch(2 * gpu.info.sms, 1024, 32)\n"
        "gpu.observe(tb.Sequence([full]))\n"
        "print('ready', flush=True)\n"
        "gpu.observe(tb.Sequence([full, full]), settle=9.0, deadline=20.0)\n"
    )
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        child.kill()
    after = (
        "import tbsched as tb; from tbsched.launcher.observe import Gpu\n"
        "gpu = Gpu(0); full = tb.Launch(2 * gpu.info.sms, 1024, 32)\n"
        "print(gpu.observe(tb.Sequence([full]), deadline=5.0)[0].placed == full.blocks)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", after],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert done.stdout == "True\n", done.stderr
