"""Whatever fails, exactly that is said, nothing is lost, and the next run works."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import strategies as st

import tbsched as tb
from helpers import ROOT, Fake
from tbsched.launcher.observe import Gpu

_launcher = pytest.importorskip("tbsched._launcher", reason="built without nvcc")

SMS = 4
HELD = tb.Sequence(
    [
        tb.Launch(2, 64, 40, carveout=50, shared_memory=2048),
        tb.Launch(2, 32, 24, cluster=2, local_memory=4096),
        tb.Release(0),
    ]
)
TIMED = tb.Sequence(
    [
        tb.Launch(3, 32, 16, duration=(1e-5, 2e-5, 0.0), stream=1),
        tb.RecordEvent(0, 1),
        tb.WaitEvent(0, 2),
        tb.Launch(1, 32, 16, duration=1e-5, stream=2),
        tb.Synchronize(event=0, host=1),
        tb.Synchronize(),
        *(tb.Copy(64, kind, stream=2, blocking=kind == "d2h") for kind in ("h2d", "d2h", "d2d")),
        tb.Memset(64, stream=1),
        tb.Synchronize(event=0),
    ]
)
PARTITION = tb.Partition((0, 1), split=tb.SmSplit(2), group=0)
NODE = tb.Launch(2, 32, 16, duration=1e-5, priority=-1, cooperative=True)
COPIES = (tb.Copy(64, "h2d"), tb.Memset(8))
MARKS = (tb.RecordEvent(7), tb.WaitEvent(7), tb.MemAlloc("a", 64), tb.MemFree("a"))
GRAPH = tb.Graph(
    [NODE, NODE, replace(NODE, partition=PARTITION), *COPIES, tb.HostFunction(1e-6), *MARKS],
    [(0, 2), (1, 2), (2, 3), (3, 4), (6, 7), (8, 9)],
)
BODY = tb.Graph([replace(NODE, registers=24)])
LOOP = tb.Graph([NODE, tb.Conditional(BODY, times=2)], edges=[(0, 1)])
WAYS = tb.Sequence(
    [
        LOOP.launch(3),
        GRAPH.launch(3),
        GRAPH.launch(3),
        tb.HostFunction(1e-6, stream=3),
        tb.WaitValue("x", stream=4),
        tb.WriteValue("x", stream=3),
        tb.Launch(1, 32, 16, duration=1e-5, stream=1, trigger=0.0, completion_event=1),
        tb.Launch(1, 32, 16, duration=1e-5, stream=1, programmatic=True, memory_wait=0.0),
        tb.WaitEvent(1, 2),
        tb.Launch(1, 32, 16, duration=1e-5, stream=2, partition=PARTITION, carveout=50),
    ]
)
FULL = tb.Sequence([tb.Launch(2 * SMS, 1024, 32)])
UNKNOWN = 999
# What is lost where the call that should take it back fails.
TAKES_BACK = {
    "cuCtxPopCurrent_v2": "current contexts",
    "cuDevicePrimaryCtxRelease_v2": "contexts",
    "cuEventDestroy_v2": "events",
    "cuGraphDestroy": "graphs",
    "cuGraphExecDestroy": "executable graphs",
    "cuGreenCtxDestroy": "green contexts",
    "cuMemFree_v2": "device memory",
    "cuMemFreeHost": "host memory",
    "cuLibraryUnload": "libraries",
    "cuStreamDestroy_v2": "streams",
}
# Called once in a process, or to say what went wrong, or to compile for other GPUs, or for several
# GPUs (test_several.py).
OTHERS = {
    "cuInit", "cuGetErrorName", "cuGetErrorString", "cuDeviceCanAccessPeer",
    "cuDeviceGetP2PAttribute", "cuCtxEnablePeerAccess",
} | {f"cuLink{what}" for what in ("Create_v2", "AddData_v2", "Complete", "Destroy")}  # fmt: skip
CALLS = sorted(
    set(re.findall(r'"(cu\w+)"', (ROOT / "cpp/launcher/driver/driver.h").read_text("utf-8")))
    - OTHERS
)
MOST_OF_ONE = 6
# Made until something is true: sometimes once, sometimes more often.
POLLED = {"cuStreamQuery"}


@pytest.fixture
def gpu(gpu: Gpu) -> Gpu:
    gpu.observe(FULL)
    return gpu


def all_of_it() -> None:
    """Opens, observes, closes."""
    with Gpu(0) as own:
        assert own._gpu.kernel_size(HELD.launches[0]) == (40, 0)
        assert own.observe(HELD)[0].placed == 2
        own.observe(TIMED)
        own.observe(WAYS)
        assert [*map(len, own.observe_many([HELD, FULL]))] == [2, 1]  # type: ignore[arg-type]
        assert tb.meet(FULL, gpu=own)


@contextlib.contextmanager
def failing(knobs: Fake, call: str, at: int, *, for_good: bool = False) -> Iterator[None]:
    """What may be raised and warned of, and nothing else."""
    knobs.fail(call, at, code=UNKNOWN, for_good=for_good)
    with contextlib.suppress(tb.CudaError, tb.DeadlineExceeded), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is not given back", UserWarning)
        yield
    assert knobs.failed == call
    knobs.fail(at=0)


def lost(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {kind: after[kind] - count for kind, count in before.items() if after[kind] != count}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_may_fail_once(gpu: Gpu, knobs: Fake, call: str) -> None:
    knobs.fail(at=0)
    all_of_it()
    calls = knobs.calls(call)
    assert calls, "the test misses a call"
    for at in range(1, min(calls, MOST_OF_ONE) + 1):
        before = knobs.live()
        with failing(knobs, call, at):
            all_of_it()
        # It works again, and gives back what had been left to it.
        assert gpu.observe(FULL)[0].placed == 2 * SMS
        assert lost(before, knobs.live()) == ({TAKES_BACK[call]: 1} if call in TAKES_BACK else {})
    assert knobs["taken_while_in_use"] == 0


@pytest.mark.parametrize("call", CALLS)
def test_every_call_may_fail_for_good(gpu: Gpu, knobs: Fake, call: str) -> None:
    before = knobs.live()
    with failing(knobs, call, 1, for_good=True):
        all_of_it()
    assert gpu.observe(FULL)[0].placed == 2 * SMS
    if call not in TAKES_BACK:
        assert lost(before, knobs.live()) == {}
    assert knobs["taken_while_in_use"] == 0


@pytest.mark.parametrize("call", ["cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete"])
def test_compiling_may_fail(
    gpu: Gpu, knobs: Fake, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cubin = tmp_path / "jit.cubin"
    cubin.write_bytes(_launcher.images()["sm_90"])
    monkeypatch.setenv("FAKE_JIT_CUBIN", str(cubin))
    before = knobs.live()
    with failing(knobs, call, 1):
        _launcher.Gpu(0, from_ptx=True)
    assert lost(before, knobs.live()) == {}
    assert _launcher.Gpu(0, from_ptx=True).close()
    assert lost(before, knobs.live()) == {}


def test_a_cluster_query_that_fails_is_no_refusal(gpu: Gpu, knobs: Fake) -> None:
    with pytest.raises(ValueError, match="cluster of 16 such blocks"):
        gpu.observe(tb.Sequence([tb.Launch(16, 32, 16, cluster=16)]))
    knobs.fail("cuOccupancyMaxActiveClusters")
    with pytest.raises(
        tb.CudaError, match="cuOccupancyMaxActiveClusters: CUDA_ERROR_INVALID_VALUE"
    ):
        gpu.observe(tb.Sequence([tb.Launch(2, 32, 16, cluster=2)]))


@pytest.mark.parametrize("garbage", range(1, 10))
@pytest.mark.parametrize("seq", [HELD, TIMED], ids=["held", "timed"])
def test_records_that_cannot_be_are_refused(
    gpu: Gpu, knobs: Fake, garbage: int, seq: tb.Sequence
) -> None:
    knobs["garbage"] = garbage
    with pytest.raises(tb.UnstableMeasurement, match="in each of 3 runs") as caught:
        gpu.observe(seq)
    assert caught.type is tb.UnstableMeasurement
    knobs["garbage"] = 0
    assert gpu.observe(seq)[0].placed == seq.launches[0].blocks


# Blocks of 50 s, and a launch that waits for those before for as long as the settling time.
LONG = tb.Sequence(
    [
        tb.Launch(2 * SMS, 1024, 32, duration=50.0, stream=0),
        tb.RecordEvent(0, 0),
        tb.WaitEvent(0, 1),
        tb.Launch(2, 32, 24, duration=(50.0, 40.0), stream=1, local_memory=4096),
        tb.Launch(1, 32, 16, duration=50.0, stream=2, partition=PARTITION, trigger=0.0),
        tb.Launch(1, 32, 16, duration=50.0, stream=2, partition=PARTITION, programmatic=True),
        tb.Graph([replace(NODE, duration=50.0)] * 2, [(0, 1)]).launch(3),
    ]
)
# Behind it a run whose launches wait for local memory resets what there is.
GROWN = tb.Sequence([tb.Launch(1, 32, 16, local_memory=4096)])
STUCK = tb.Sequence([*FULL, tb.Launch(2, 32, 24, local_memory=4096), tb.Launch(1, 32, 16)])


def interrupted(gpu: Gpu | None, seq: tb.Sequence) -> None:
    """Takes until the deadline if blocks are not told to leave."""
    with contextlib.suppress(KeyboardInterrupt):
        if gpu is None:
            with Gpu(0) as own:
                own.observe(seq, settle=9.0, deadline=9.0)
        else:
            gpu.observe(seq, settle=9.0, deadline=9.0)
        raise AssertionError("not interrupted")


def calls_of(knobs: Fake, gpu: Gpu | None, seq: tb.Sequence) -> dict[str, int]:
    """How often a run makes each call before it has nothing to do but wait."""
    counts: dict[str, int] = {}

    def count() -> None:
        counts.update({call: knobs.calls(call) for call in CALLS})
        os.kill(os.getpid(), signal.SIGINT)

    interrupted_soon = threading.Timer(0.15, count)
    knobs.interrupt("", 0)
    interrupted_soon.start()
    interrupted(gpu, seq)
    return counts


@pytest.mark.parametrize("seq", [LONG, STUCK], ids=["timed", "held"])
@pytest.mark.parametrize("opened", [True, False])
def test_ctrl_c_in_every_call_ends_a_run(
    gpu: Gpu, knobs: Fake, seq: tb.Sequence, opened: bool
) -> None:
    which = gpu if opened else None
    calls_of(knobs, which, seq)  # loads what is loaded once
    gpu.observe(GROWN)
    before = knobs.live()
    for call, count in calls_of(knobs, which, seq).items():
        for at in range(1, min(count, 1 if call in POLLED else 3) + 1):
            gpu.observe(GROWN)
            knobs.interrupt(call, at)
            interrupted(which, seq)
            assert knobs.calls(call) >= at
    knobs.interrupt("", 0)
    assert gpu.observe(FULL)[0].placed == 2 * SMS
    assert lost(before, knobs.live()) == {}
    assert knobs["taken_while_in_use"] == 0


def test_ctrl_c_ends_a_run_whose_launch_calls_block(gpu: Gpu, knobs: Fake) -> None:
    knobs["queue_depth"] = 300
    one = tb.Launch(1, 32, 16, stream=0)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    interrupted(gpu, tb.Sequence([FULL.launches[0], *[one] * 400]))
    assert gpu.observe(FULL)[0].placed == 2 * SMS


def test_the_last_block_of_thousands_is_told(gpu: Gpu, knobs: Fake) -> None:
    durations = (*[0.0] * 4095, 50.0)
    many = [tb.Launch(4096, 32, 16, duration=durations, stream=k) for k in range(4)]
    told = knobs["told"]
    with pytest.raises(tb.DeadlineExceeded, match="told to leave, and has left"):
        gpu.observe(tb.Sequence(many), deadline=1.0)
    assert knobs["told"] - told >= 1


def test_what_blocks_may_still_use_is_kept(gpu: Gpu, knobs: Fake) -> None:
    before = knobs.live()
    own = Gpu(0)
    own.observe(FULL)
    knobs["mute"] = 1
    with pytest.raises(tb.DeadlineExceeded, match="some have not left yet: what they use is kept"):
        own.observe(FULL, deadline=0.05)
    with pytest.raises(tb.DeadlineExceeded, match="nothing was launched: blocks of an earlier run"):
        own.observe(FULL, deadline=0.05)
    with pytest.warns(UserWarning, match="is not given back"):
        own.close()
    assert lost(before, knobs.live())
    with pytest.raises(tb.DeadlineExceeded, match="nothing was launched: blocks of an earlier run"):
        gpu.observe(FULL, deadline=0.05)
    knobs["mute"] = 0
    assert gpu.observe(FULL)[0].placed == 2 * SMS
    assert lost(before, knobs.live()) == {}
    assert knobs["taken_while_in_use"] == 0


def test_the_turns_of_another_process_are_noticed(gpu: Gpu, knobs: Fake) -> None:
    knobs["turn_us"], knobs["away_us"] = 51, 300  # every other step
    for seq in (
        tb.Sequence([*FULL, tb.Launch(1, 32, 16)]),
        tb.Sequence([tb.Launch(1, 32, 16, duration=0.01)]),
    ):
        with pytest.raises(
            tb.SharedGpu, match=r"another process .* in each of 6 runs .* \d{3,} us"
        ):
            gpu.observe(seq)
    outcomes = list(gpu.observe_many([FULL] * 2))
    assert [*map(type, outcomes)] == [tb.SharedGpu] * 2


def wrong_campaign(gpu: Gpu) -> tb.Report:
    few = st.builds(tb.Launch, st.integers(1, 4), st.just(1024), st.just(32))
    rows = {"sms": SMS, "sm_preference": tuple(range(SMS)), "gpcs": (), "policy": "first_fit"}
    return tb.fuzz(
        gpu,
        replace(tb.device("h200"), max_cluster=1, **rows),  # type: ignore[arg-type]
        strategy=st.lists(few, min_size=2, max_size=4).map(tb.Sequence),
        max_examples=10,
        seed=1,
        progress=False,
    )


def test_a_campaign_beside_another_process_finds_nothing(gpu: Gpu, knobs: Fake) -> None:
    knobs["turn_us"], knobs["away_us"] = 150, 4000
    report = wrong_campaign(gpu)
    assert not report.counterexamples
    assert report.ended == "another process"
    assert report.unstable
    assert all("another process uses this GPU" in row.reason for row in report.unstable)


def test_what_disagrees_between_another_processs_turns_is_not_reported(
    gpu: Gpu, knobs: Fake
) -> None:
    assert wrong_campaign(gpu).counterexamples
    before = gpu.interruptions
    knobs["turn_us"], knobs["away_us"] = 15_000, 2500  # longer than the runs of a campaign
    report = wrong_campaign(gpu)
    assert gpu.interruptions > before
    assert report.disagreements
    assert not report.counterexamples
    assert report.ended == "another process"
    assert "another process uses this GPU" in report.unstable[-1].reason


def test_under_mps_no_disagreement_is_reported(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "mps", True)
    report = wrong_campaign(gpu)
    assert not report.counterexamples
    assert report.ended == "another process"
    assert "an MPS daemon runs" in report.unstable[-1].reason


def test_another_processs_turn_that_ends_costs_one_run_more(gpu: Gpu, knobs: Fake) -> None:
    runs = gpu.time_spent()["runs"]
    knobs["turn_us"], knobs["away_us"] = 60_000, 2500
    seq = tb.Sequence([tb.Launch(1, 32, 16, duration=0.02)])
    for _ in range(6):
        assert gpu.observe(seq)[0].placed == 1
    assert gpu.time_spent()["runs"] > runs + 6
