"""The launcher from end to end, against a driver that emulates a GPU of four SMs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tbsched as tb
from helpers import Fake, run_on_fake
from tbsched.launcher.observe import Gpu

pytest.importorskip("tbsched._launcher", reason="built without nvcc")

SMS = 4


def counts(smid: np.ndarray) -> list[int]:
    return [int(np.count_nonzero(smid == sm)) for sm in range(SMS)]


FULL = tb.Launch(blocks=2 * SMS, threads=1024, registers=32)


def test_info_says_what_the_trace_header_needs(gpu: Gpu) -> None:
    assert gpu.info.name == "Fake GPU"
    assert gpu.info.sms == SMS
    assert dict(gpu.info.details) == {
        "compute_capability": "9.0",
        "driver": "999.88.07",
        "cuda": "13.0",
        "uuid": "GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a",
        "max_connections": 32,
    }


def test_what_fits_is_placed(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([tb.Launch(6, 64, 16), tb.Launch(2, 64, 16)]))
    assert counts(trace[0].smid) == [2, 2, 1, 1]
    assert counts(trace[1].smid) == [0, 0, 1, 1]
    assert trace[0].start_ns is not None
    assert trace[0].end_ns is not None
    assert (trace[0].end_ns > trace[0].start_ns).all()


def test_no_events_give_an_empty_trace(gpu: Gpu) -> None:
    assert len(gpu.observe(tb.Sequence([]))) == 0


def test_release_places_what_waited(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([FULL, tb.Launch(3, 32, 16), tb.Release(0)]))
    assert counts(trace[0].smid) == [2, 2, 2, 2]
    assert counts(trace[1].smid) == [0, 0, 0, 0]
    assert trace[1].final_smid is not None
    assert counts(trace[1].final_smid) == [1, 1, 1, 0]


def test_what_never_got_room_is_not_placed(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([FULL, tb.Launch(3, 32, 16), tb.Launch(1, 32, 16)]))
    for waiting in (trace[1], trace[2]):
        assert (waiting.smid == -1).all()
        assert waiting.final_smid is not None
        assert (waiting.final_smid == -1).all()
        assert waiting.start_ns is not None
        assert (waiting.start_ns == 0).all()


def test_launch_released_while_waiting_leaves_when_it_starts(gpu: Gpu) -> None:
    waiting = tb.Launch(4 * SMS, 1024, 32)
    seq = tb.Sequence([FULL, waiting, tb.Release(1), tb.Release(0), tb.Launch(4, 32, 16)])
    trace = gpu.observe(seq)
    assert (trace[1].smid == -1).all()
    assert trace[1].final_smid is not None
    assert (trace[1].final_smid >= 0).all()
    assert counts(trace[2].smid) == [1, 1, 1, 1]


def test_own_release_places_the_rest_of_a_launch(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([tb.Launch(12, 1024, 32), tb.Release(0)]))
    assert counts(trace[0].smid) == [2, 2, 2, 2]
    assert trace[0].final_smid is not None
    assert (trace[0].final_smid >= 0).all()


def test_higher_priority_passes(gpu: Gpu) -> None:
    big = tb.Launch(SMS, 32, 16, shared_memory=150 * 1024)
    seq = tb.Sequence([big, big, tb.Launch(4, 32, 16), tb.Launch(4, 32, 16, priority=-1)])
    trace = gpu.observe(seq)
    assert trace[1].placed == trace[2].placed == 0
    assert trace[3].placed == 4


def test_launches_of_one_stream_run_one_after_the_other(gpu: Gpu) -> None:
    first, second = tb.Launch(1, 32, 16, stream=7), tb.Launch(2, 32, 16, stream=7)
    trace = gpu.observe(tb.Sequence([first, second, tb.Launch(1, 32, 16), tb.Release(0)]))
    assert trace[1].placed == 0
    assert trace[2].placed == 1
    assert trace[1].final_smid is not None
    assert (trace[1].final_smid >= 0).all()


def test_more_launches_than_there_are_streams(gpu: Gpu) -> None:
    events: list[tb.Launch | tb.Release] = []
    for number in range(140):
        events += [tb.Launch(1, 32, 16), tb.Release(number)]
    trace = gpu.observe(tb.Sequence(events))
    assert all(placement.placed == 1 for placement in trace)


def test_block_seen_late_that_waited_for_nothing_counts_as_placed(gpu: Gpu, knobs: Fake) -> None:
    knobs["seen_late_us"] = 8000
    trace = gpu.observe(tb.Sequence([tb.Launch(1, 32, 16), tb.Launch(2, 32, 16), tb.Release(0)]))
    assert trace[0].placed == 1
    assert trace[1].placed == 2


def test_start_close_to_a_release_is_doubtful(gpu: Gpu, knobs: Fake) -> None:
    full = [tb.Launch(2 * SMS - 1, 1024, 32), tb.Launch(1, 1024, 32)]
    seq = tb.Sequence([*full, tb.Launch(1, 32, 16), tb.Release(1)])
    knobs["doubtful"] = 1
    with pytest.raises(tb.UnstableMeasurement, match="too close to say"):
        gpu.observe(seq)


def test_block_that_moved_is_unstable(gpu: Gpu, knobs: Fake) -> None:
    knobs["moved"] = 1
    with pytest.raises(tb.UnstableMeasurement, match="moved from SM 0 to SM 1"):
        gpu.observe(tb.Sequence([tb.Launch(1, 32, 16)]))


def test_blocked_launch_call_is_released_by_the_next_event(gpu: Gpu, knobs: Fake) -> None:
    knobs["growing_blocks"] = 1
    held, large = tb.Launch(1, 32, 16), tb.Launch(2, 32, 16, local_memory=4096)
    trace = gpu.observe(tb.Sequence([held, large, tb.Release(0)]))
    assert trace[1].placed == 0
    assert trace[1].final_smid is not None
    assert (trace[1].final_smid >= 0).all()


def test_a_launch_waits_for_local_memory_whatever_ran_before(gpu: Gpu, knobs: Fake) -> None:
    knobs["growing_blocks"] = 1
    held, large = tb.Launch(1, 32, 16), tb.Launch(2, 32, 16, local_memory=4096)
    for _ in range(2):
        assert gpu.observe(tb.Sequence([large, held, large]))[2].placed == 2
        assert gpu.observe(tb.Sequence([held, large]))[1].placed == 0
    with Gpu(0) as another:
        assert another.observe(tb.Sequence([held, large]))[1].placed == 0


def test_local_memory_shrinks_only_where_it_matters(gpu: Gpu, knobs: Fake) -> None:
    held, small, large = (tb.Launch(1, 32, 16, local_memory=n) for n in (0, 1024, 4096))
    timed = tb.Launch(1, 32, 16, local_memory=1024, duration=0.0)
    for events, shrinks in (
        ([large, small, large, held], False),
        ([held], False),
        ([small, large], True),
        ([timed], True),  # how long it takes shows
    ):
        gpu.observe(tb.Sequence([large]))
        knobs.fail(at=0)
        gpu.observe(tb.Sequence(events))
        assert knobs.calls("cuCtxSetLimit") == shrinks


def test_blocked_launch_call_at_the_end_does_not_hang(gpu: Gpu, knobs: Fake) -> None:
    knobs["growing_blocks"] = 1
    held, large = tb.Launch(1, 32, 16), tb.Launch(2, 32, 16, local_memory=4096)
    trace = gpu.observe(tb.Sequence([held, large, held]))
    assert [placement.placed for placement in trace] == [1, 0, 0]


def test_deadline_releases_everything(gpu: Gpu, knobs: Fake) -> None:
    gpu.observe(tb.Sequence([FULL]))
    knobs["mute"] = 1
    threading.Timer(0.5, lambda: knobs.__setitem__("mute", 0)).start()
    with pytest.raises(tb.DeadlineExceeded, match="launch 0: 0 of 8 blocks started"):
        gpu.observe(tb.Sequence([FULL]), deadline=0.2)
    assert gpu.observe(tb.Sequence([FULL]))[0].placed == 8


def test_deadline_while_a_launch_call_is_blocked(gpu: Gpu, knobs: Fake) -> None:
    knobs["growing_blocks"] = 1
    events = [tb.Launch(1, 32, 16), tb.Launch(1, 32, 16, local_memory=4096)]
    for number in range(60):
        events.append(tb.Launch(1, 32, 17 + number))
    with pytest.raises(tb.DeadlineExceeded):
        gpu.observe(tb.Sequence(events), deadline=0.3)
    assert gpu.observe(tb.Sequence([FULL]))[0].placed == 8


def test_interrupt_releases_everything(gpu: Gpu, knobs: Fake) -> None:
    gpu.observe(tb.Sequence([FULL]))
    knobs["mute"] = 1
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    threading.Timer(0.4, lambda: knobs.__setitem__("mute", 0)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        gpu.observe(tb.Sequence([FULL]))
    assert time.monotonic() - begin < 3
    assert gpu.observe(tb.Sequence([FULL]))[0].placed == 8


def test_driver_error_names_call_and_code(gpu: Gpu, knobs: Fake) -> None:
    gpu.observe(tb.Sequence([FULL]))
    knobs.fail("cuLaunchKernelEx")
    with pytest.raises(tb.CudaError) as caught:
        gpu.observe(tb.Sequence([FULL, FULL]))
    assert caught.value.call == "cuLaunchKernelEx"
    assert caught.value.code == "CUDA_ERROR_INVALID_VALUE"
    assert "made up" in str(caught.value)
    assert gpu.observe(tb.Sequence([FULL]))[0].placed == 8


def test_repeats_that_agree(gpu: Gpu) -> None:
    assert gpu.observe(tb.Sequence([FULL]), repeats=3)[0].placed == 8


def test_repeats_that_disagree_are_unstable(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    device = gpu.info
    seq = tb.Sequence([tb.Launch(2, 32, 16)])
    answers = iter([[0, 1], [0, 2]])

    def answer(*_: object, **__: object) -> tuple[tb.Trace, tuple[bool, ...]]:
        smid = np.array(next(answers), np.int32)
        return tb.Trace(seq, device, (tb.Placement(smid, smid),)), ()

    monkeypatch.setattr(gpu, "run", answer)
    with pytest.raises(tb.UnstableMeasurement, match=r"1 blocks on SM 1 .* and 0 in run 2"):
        gpu.observe(seq, repeats=2)


def test_warp_slots_have_a_row_per_block(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([tb.Launch(3, 80, 16)]), warp_slots=True)
    assert trace[0].warp_slots is not None
    assert trace[0].warp_slots.tolist() == [[0, 1, 2]] * 3
    assert gpu.observe(tb.Sequence([tb.Launch(3, 80, 16)]))[0].warp_slots is None


def test_many_blocks(gpu: Gpu) -> None:
    trace = gpu.observe(tb.Sequence([tb.Launch(100_000, 32, 16)]), deadline=60)
    assert trace[0].placed == 32 * SMS


def test_nothing_is_loaded_or_allocated_again(gpu: Gpu, knobs: Fake) -> None:
    seq = tb.Sequence([FULL, tb.Launch(4, 96, 40, carveout=50), tb.Release(0)])
    gpu.observe(seq)
    kept = ("libraries", "streams", "host_allocations")
    before = [knobs[key] for key in kept]
    gpu.observe(seq)
    assert [knobs[key] for key in kept] == before


def test_carveout_and_shared_memory_reach_the_driver(gpu: Gpu, knobs: Fake) -> None:
    for shared_memory, carveout in ((5000, 50), (227 * 1024, 100), (5000, None), (0, 50)):
        gpu.observe(tb.Sequence([tb.Launch(1, 32, 77, shared_memory, carveout=carveout)]))
        assert knobs["carveout"] == (-1 if carveout is None else carveout)


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (tb.Launch(1, 32, 11), r"Launch\.registers: 11 is outside 14\.\.255"),
        (tb.Launch(1, 1024, 65), r"launch 0: Launch\.registers: 65 .* at most 65536"),
        (tb.Launch(1, 32, 16, shared_memory=232449), r"shared_memory: 232449 .* 0\.\.232448"),
        (tb.Launch(16, 32, 16, cluster=16), r"cluster of 16 such blocks"),
        (tb.Launch(2**30, 32, 16), r"Launch\.blocks: 1073741825 in the whole sequence"),
    ],
)
def test_what_the_gpu_refuses_is_refused_before_any_launch(
    gpu: Gpu, knobs: Fake, launch: tb.Launch, message: str
) -> None:
    gpu.observe(tb.Sequence([tb.Launch(1, 32, 16)]))
    before = knobs["launches"]
    with pytest.raises(ValueError, match=message):
        gpu.observe(tb.Sequence([tb.Launch(1, 32, 16), launch][::-1]))
    assert knobs["launches"] == before


def test_priorities_outside_the_range_are_clamped(gpu: Gpu) -> None:
    big = tb.Launch(SMS, 32, 16, shared_memory=150 * 1024)
    small = tb.Launch(4, 32, 16)
    for waiting, later, entered in ((-5, -6, 0), (0, 3, 0), (3, 0, 0), (3, -1, 4), (-4, -9, 4)):
        events = [big, replace(big, priority=waiting), replace(small, priority=later)]
        assert gpu.observe(tb.Sequence(events))[2].placed == entered
    alike = [tb.Launch(1, 32, 16, stream=1, priority=level) for level in (-5, -6)]
    assert gpu.observe(tb.Sequence(alike))[0].placed == 1


def test_one_stream_has_one_priority(gpu: Gpu) -> None:
    events = [tb.Launch(1, 32, 16, stream=1), tb.Launch(1, 32, 16, stream=1, priority=-1)]
    with pytest.raises(ValueError, match=r"launch 1: Launch\.priority: -1 differs"):
        gpu.observe(tb.Sequence(events))


@pytest.mark.parametrize("name", ["deadline", "settle"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_times_must_be_positive_and_finite(gpu: Gpu, name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        gpu.observe(tb.Sequence([]), **{name: value})  # type: ignore[arg-type]


def test_arguments_of_the_wrong_kind() -> None:
    with pytest.raises(TypeError, match="Sequence"):
        tb.observe([tb.Launch(1, 32, 16)])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="repeats: 0"):
        tb.observe(tb.Sequence([]), repeats=0)
    with pytest.raises(ValueError, match="gpu: -1"):
        tb.observe(tb.Sequence([]), gpu=-1)


def test_a_closed_gpu_says_so(fake: Path) -> None:
    code = (
        "import tbsched as tb; from tbsched.launcher.observe import Gpu\n"
        "gpu = Gpu(0); gpu.close(); gpu.close()\n"
        "try: gpu.observe(tb.Sequence([]))\n"
        "except ValueError as error: print(error)\n"
    )
    assert "closed" in run_on_fake(code, fake).stdout


OBSERVE = "import tbsched as tb\nprint(tb.observe(tb.Sequence([tb.Launch(2, 32, 16)]))[0].placed)\n"


def test_module_level_observe_keeps_the_gpu_open(fake: Path) -> None:
    done = run_on_fake(
        OBSERVE + "print(len(__import__('sys').modules['tbsched.launcher.observe']._opened))", fake
    )
    assert done.stdout.split() == ["2", "1"]
    assert done.stderr == ""


def test_no_driver_says_what_was_looked_for() -> None:
    done = run_on_fake(OBSERVE, Path("/nowhere/libcuda.so"))
    assert "NoGpuError: looked for the CUDA driver, /nowhere/libcuda.so" in done.stderr


def test_no_device_says_what_the_driver_said(fake: Path) -> None:
    done = run_on_fake(OBSERVE, fake, FAKE_NO_DEVICE="1")
    assert "NoGpuError" in done.stderr
    assert "CUDA_ERROR_NO_DEVICE" in done.stderr


def test_no_such_gpu_says_how_many_there_are(fake: Path) -> None:
    done = run_on_fake("import tbsched as tb\ntb.observe(tb.Sequence([]), gpu=3)", fake)
    assert "NoGpuError: looked for GPU 3; the CUDA driver shows 1" in done.stderr


def test_a_gpu_older_than_every_image_is_no_gpu(fake: Path) -> None:
    done = run_on_fake(OBSERVE, fake, FAKE_ARCHITECTURE="35")
    assert "NoGpuError: this GPU has compute capability 3.5" in done.stderr


def test_a_gpu_newer_than_the_toolkit_compiles_the_ptx(fake: Path, tmp_path: Path) -> None:
    from tbsched import _launcher

    cubin = tmp_path / "jit.cubin"
    cubin.write_bytes(_launcher.images()["sm_90"])
    done = run_on_fake(OBSERVE, fake, FAKE_ARCHITECTURE="999", FAKE_JIT_CUBIN=str(cubin))
    assert done.stdout.split() == ["2"], done.stderr


@pytest.mark.parametrize(
    ("setting", "warning"),
    [({"FAKE_MIG": "1"}, "MIG is enabled"), ({"FAKE_PROCESSES": "2"}, "2 other process")],
)
def test_what_disturbs_is_said_once(fake: Path, setting: dict[str, str], warning: str) -> None:
    done = run_on_fake(OBSERVE + OBSERVE, fake, **setting)
    assert done.stdout.split() == ["2", "2"]
    assert done.stderr.count(warning) == 1


def test_mps_is_said(fake: Path, tmp_path: Path) -> None:
    (tmp_path / "control").touch()
    done = run_on_fake(OBSERVE, fake, CUDA_MPS_PIPE_DIRECTORY=str(tmp_path))
    assert "MPS" in done.stderr
    code = "from tbsched.launcher.observe import Gpu; print(Gpu(0).mps)"
    assert run_on_fake(code, fake, CUDA_MPS_PIPE_DIRECTORY=str(tmp_path)).stdout == "True\n"


def test_the_users_environment_stays(fake: Path) -> None:
    code = OBSERVE + (
        "import ctypes; libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p\n"
        "for name in (b'CUDA_MODULE_LOADING', b'CUDA_DEVICE_MAX_CONNECTIONS'):\n"
        "    print(libc.getenv(name).decode())\n"
    )
    assert run_on_fake(code, fake).stdout.split() == ["2", "EAGER", "32"]
    done = run_on_fake(code, fake, CUDA_DEVICE_MAX_CONNECTIONS="8")
    assert done.stdout.split() == ["2", "EAGER", "8"]


def test_a_forked_child_does_not_hang(fake: Path) -> None:
    code = (
        "import os, sys, tbsched as tb; from tbsched.launcher.observe import Gpu\n"
        "gpu = Gpu(0); seq = tb.Sequence([tb.Launch(1, 32, 16)]); gpu.observe(seq)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    try: gpu.observe(seq)\n"
        "    except tb.NoGpuError: del gpu; sys.exit(5)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert run_on_fake(code, fake).stdout.split() == ["5"]


def test_without_the_launcher_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tbsched._launcher", None)
    monkeypatch.delattr(tb, "_launcher", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tb.NoGpuError, match="install the CUDA toolkit"):
            Gpu(0)
