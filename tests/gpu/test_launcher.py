"""Does the real GPU hold the probe's blocks as the launcher means it to?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb
from tbsched import _launcher
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu


def per_sm(gpu: Gpu, smid: np.ndarray) -> np.ndarray:
    return np.bincount(smid[smid >= 0], minlength=gpu.info.sms)


def fills(
    gpu: Gpu, threads: int, registers: int, shared_memory: int = 0, carveout: int | None = None
) -> None:
    """One block more than the occupancy query allows per SM does not fit anywhere."""
    launch = tb.Launch(1, threads, registers, shared_memory, carveout=carveout)
    resident = gpu._gpu.resident(launch)
    launch = replace(launch, blocks=resident * gpu.info.sms + 1)
    trace = gpu.observe(tb.Sequence([launch]))
    assert per_sm(gpu, trace[0].smid).tolist() == [resident] * gpu.info.sms


@pytest.mark.parametrize("registers", [16, 24, 32, 40, 64, 72, 96, 128, 168, 200, 255])
def test_patched_register_count_binds(gpu: Gpu, registers: int) -> None:
    launch = tb.Launch(1, 128, registers)
    assert gpu._gpu.kernel_size(launch) == (registers, 0)
    fills(gpu, 128, registers)


@pytest.mark.parametrize("threads", [1, 32, 33, 416, 1024])
def test_threads_bind(gpu: Gpu, threads: int) -> None:
    fills(gpu, threads, 16)


def test_shared_memory_up_to_the_most_per_block(gpu: Gpu) -> None:
    with pytest.raises(ValueError, match="shared_memory") as caught:
        gpu.observe(tb.Sequence([tb.Launch(1, 32, 16, shared_memory=2**24)]))
    most = int(str(caught.value).split("..")[-1].split()[0])
    for size in (1024, 40_000, 49_152, 49_153, 100_000, most):
        fills(gpu, 32, 16, shared_memory=size, carveout=100)


def test_carveout_limits_the_blocks_with_shared_memory(gpu: Gpu) -> None:
    def placed(carveout: int | None) -> int:
        launch = tb.Launch(32 * gpu.info.sms, 32, 16, shared_memory=8192, carveout=carveout)
        return gpu.observe(tb.Sequence([launch]))[0].placed

    low, half, full = placed(0), placed(50), placed(100)
    assert low < half < full
    # The default makes room for as many as the whole memory holds.
    assert placed(None) == full


def test_local_memory_grows_anew_in_every_sequence(gpu: Gpu) -> None:
    few, larger = tb.Launch(10, 64, 16), tb.Launch(10, 64, 16, local_memory=8192)
    for _ in range(3):
        trace = gpu.observe(tb.Sequence([few, larger, tb.Release(0)]))
        assert trace[1].smid.max() == -1


def test_a_release_takes_microseconds_however_many_blocks_ask(gpu: Gpu) -> None:
    full = tb.Launch(32 * gpu.info.sms, 32, 16, carveout=100)
    trace = gpu.observe(tb.Sequence([full, tb.Release(0), full]))
    ends = trace[0].end_ns
    assert ends is not None
    print(f"{len(ends)} blocks left within {np.ptp(ends) / 1e3:.0f} us")
    assert np.ptp(ends) < 500_000


@pytest.mark.parametrize("local_memory", [512, 4096])
def test_local_memory_is_what_was_asked_for(gpu: Gpu, local_memory: int) -> None:
    launch = tb.Launch(gpu.info.sms, 64, 32, local_memory=local_memory)
    assert gpu._gpu.kernel_size(launch) == (32, local_memory)
    assert gpu.observe(tb.Sequence([launch]))[0].placed == gpu.info.sms


def test_growing_local_memory_behind_held_blocks_does_not_hang(gpu: Gpu) -> None:
    held = tb.Launch(1, 32, 16)
    begin = time.monotonic()
    for local_memory in (8192, 16384):
        large = tb.Launch(2, 32, 16, local_memory=local_memory)
        trace = gpu.observe(tb.Sequence([held, large, tb.Release(0)]))
        assert trace[0].placed == 1
        assert trace[1].final_smid is not None
        assert (trace[1].final_smid >= 0).all()
        assert gpu.observe(tb.Sequence([held, large]))[0].placed == 1
    assert time.monotonic() - begin < 5


def test_the_cluster_query_fails_for_no_size(gpu: Gpu) -> None:
    if gpu.info.details["compute_capability"] < "9.0":
        pytest.skip("no clusters")
    found = {
        (cluster, threads): gpu._gpu.resident(tb.Launch(cluster, threads, 32, cluster=cluster))
        for cluster in range(2, 17)
        for threads in (32, 1024)
    }
    print(found)
    assert all(count >= 0 for count in found.values())


@pytest.mark.parametrize("cluster", [2, 4, 8, 16])
def test_clusters_stay_together(gpu: Gpu, cluster: int) -> None:
    if gpu.info.details["compute_capability"] < "9.0":
        pytest.skip("no clusters")
    trace = gpu.observe(tb.Sequence([tb.Launch(4 * cluster, 1024, 32, cluster=cluster)]))
    assert trace[0].placed == 4 * cluster


def test_what_does_not_fit_waits_for_a_release(gpu: Gpu) -> None:
    sms = gpu.info.sms
    full = tb.Launch(2 * sms, 1024, 32)
    resident = gpu._gpu.resident(full)
    full = tb.Launch(resident * sms, 1024, 32)
    trace = gpu.observe(tb.Sequence([full, tb.Launch(10, 32, 16), tb.Release(0)]))
    assert trace[0].placed == resident * sms
    assert trace[1].placed == 0
    assert trace[1].final_smid is not None
    assert (trace[1].final_smid >= 0).all()
    assert trace[0].end_ns is not None
    assert trace[1].start_ns is not None
    assert trace[1].start_ns.min() - trace[0].end_ns.min() >= 3000


def test_own_release_places_the_rest(gpu: Gpu) -> None:
    launch = tb.Launch(1, 1024, 32)
    blocks = (gpu._gpu.resident(launch) + 1) * gpu.info.sms
    trace = gpu.observe(tb.Sequence([tb.Launch(blocks, 1024, 32), tb.Release(0)]))
    assert trace[0].placed == blocks - gpu.info.sms
    assert trace[0].final_smid is not None
    assert (trace[0].final_smid >= 0).all()


def test_higher_priority_passes_a_waiting_launch(gpu: Gpu) -> None:
    big = tb.Launch(gpu.info.sms, 32, 16, shared_memory=99 * 1024, carveout=100)
    bigger = tb.Launch(10, 32, 16, shared_memory=150 * 1024, carveout=100)
    urgent = tb.Launch(10, 32, 16, carveout=100, priority=-1)
    try:
        trace = gpu.observe(tb.Sequence([big, bigger, urgent]))
    except ValueError as error:
        pytest.skip(f"made for more shared memory: {error}")
    assert [placement.placed for placement in trace] == [gpu.info.sms, 0, 10]


def test_one_stream_is_serial(gpu: Gpu) -> None:
    one = tb.Launch(1, 32, 16, stream=0)
    trace = gpu.observe(tb.Sequence([one, one, tb.Launch(1, 32, 16), tb.Release(0)]))
    assert [placement.placed for placement in trace] == [1, 0, 1]
    assert trace[1].final_smid is not None
    assert (trace[1].final_smid >= 0).all()


def test_many_launches_at_once(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([tb.Launch(1, 32, 16)] * 64))
    assert sum(placement.placed for placement in trace) == 64


def test_many_blocks(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([tb.Launch(100_000, 32, 16), tb.Release(0)]))
    assert trace[0].placed == 32 * gpu.info.sms or trace[0].placed % gpu.info.sms == 0
    assert trace[0].final_smid is not None
    assert (trace[0].final_smid >= 0).all()


def test_the_hardware_agrees_with_itself(gpu: Gpu) -> None:
    sms = gpu.info.sms
    seq = tb.Sequence(
        [
            tb.Launch(sms, 416, 32, carveout=100),
            tb.Launch(sms // 2 + 1, 256, 64, shared_memory=20_000, carveout=100),
            tb.Launch(4 * sms, 512, 40, carveout=100),
            tb.Release(0),
            tb.Launch(7, 96, 16, carveout=100),
        ]
    )
    assert gpu.observe(seq, repeats=20)[0].placed == sms


def test_warp_slots_are_distinct_on_an_sm(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([tb.Launch(2 * gpu.info.sms, 96, 16)]), warp_slots=True)
    slots = trace[0].warp_slots
    assert slots is not None
    assert slots.shape == (2 * gpu.info.sms, 3)
    for sm in range(gpu.info.sms):
        here = slots[trace[0].smid == sm].ravel()
        assert len(set(here.tolist())) == here.size


def test_what_can_never_run_is_refused(gpu: Gpu) -> None:
    with pytest.raises(ValueError, match=r"Launch\.registers"):
        gpu.observe(tb.Sequence([tb.Launch(1, 1024, 255)]))


def test_a_small_sequence_takes_about_a_millisecond(gpu: Gpu) -> None:
    launch = tb.Launch(66, 256, 32, carveout=100)
    seq = tb.Sequence([launch, launch, tb.Release(0), launch])
    gpu.observe(seq)
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        gpu.observe(seq)
        times.append(time.perf_counter() - begin)
    print(f"median of a small sequence: {1e3 * float(np.median(times)):.3f} ms")
    assert np.median(times) < 0.005


@pytest.mark.usefixtures("gpu")
def test_ptx_compiled_by_the_driver_is_patched_alike() -> None:
    jit = _launcher.Gpu(0, from_ptx=True)
    try:
        launch = tb.Launch(100, 128, 200)
        assert jit.kernel_size(launch) == (200, 0)
        measured, *_ = jit.run([launch], warp_slots=False, deadline=10.0, settle=0.003)
        assert (measured[0]["smid"] >= 0).all()
    finally:
        jit.close()


@pytest.mark.usefixtures("gpu")
def test_compute_sanitizer_finds_nothing() -> None:
    tool = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )
    if tool is None:
        pytest.skip("no compute-sanitizer")
    code = (
        "import tbsched as tb; from tbsched.launcher.observe import Gpu\n"
        "with Gpu(0) as gpu:\n"
        "    gpu.observe(tb.Sequence([tb.Launch(300, 96, 32, shared_memory=1024),\n"
        "        tb.Launch(64, 33, 32, local_memory=512), tb.Release(0)]),\n"
        "        warp_slots=True, deadline=60)\n"
    )
    done = subprocess.run(
        [tool, "--error-exitcode", "9", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    if "not supported" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
