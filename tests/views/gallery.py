"""A value of each kind that has a view, for tests and screenshots."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

import tbsched as tb
from helpers import ROOT, gpu, recorded
from profiled import profiled
from sm.characterization.model_sm import Class, ModelSm
from tbsched.advice.periodic import Responses
from tbsched.traces.placement import DeviceInfo, Placement

GEMM = (
    "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_32x5_nn_align8>"
    "(cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_32x5_nn_align8::Params)"
)
SOFTMAX = "void softmax_warp_forward<c10::Half, c10::Half, float, 10, false>(c10::Half*, int, int)"
KERNELS = (
    tb.Launch(396, 256, 96, 48 * 1024, stream=0, duration=3e-4, name=GEMM),
    tb.Launch(1056, 128, 32, stream=0, duration=4e-5, name=SOFTMAX),
    tb.Launch(264, 512, 64, 96 * 1024, stream=1, duration=tb.Drawn("uniform", 2e-4, 1e-4),
              name="flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 64, 4>>"),
    tb.Launch(2000, 256, 24, stream=2, duration=2e-5, name="elementwise_kernel<4, add>"),
    tb.Launch(132, 1024, 32, stream=1, duration=1e-4, name="layer_norm"),
    tb.Launch(396, 256, 96, 48 * 1024, stream=2, duration=3e-4, name=GEMM),
    tb.Launch(64, 128, 128, stream=3, priority=-2, duration=2e-4, name="all_reduce"),
)  # fmt: skip

SCHEDULERS = tb.Launch(16, 128, 32, name="schedulers")


@functools.cache
def thousand() -> tb.DeviceSpec:
    """An H200 with 1,000 SMs, in ten GPCs."""
    gpcs = tuple(tuple(range(50 * gpc, 50 * gpc + 50)) for gpc in range(10))
    return gpu(1000, "h200", gpcs=gpcs, title="GPU of 1,000 SMs", name="thousand")


def timed(times: int = 2) -> tb.Sequence:
    """A program of several streams, with CUDA events."""
    part = [*KERNELS[:3], tb.RecordEvent(1, 0), *KERNELS[3:5], tb.WaitEvent(1, 3), *KERNELS[5:]]
    return tb.Sequence(part * times)


def held(scale: int = 1) -> tb.Sequence:
    """Launches that stay until they are released, the last of which wait."""
    launches = [
        dataclasses.replace(x, stream=None, priority=0, duration=None, shared_memory=0)
        for x in KERNELS
    ]
    gemm, softmax, flash, add, _, _, reduce = launches
    parts = [(flash, 132), (reduce, 64), (gemm, 200), (softmax, 900), (add, 500)]
    first, *rest = (dataclasses.replace(x, blocks=blocks * scale) for x, blocks in parts)
    return tb.Sequence([first, *rest[:3], tb.Release(0), dataclasses.replace(first, name=None),
                        rest[3]])  # fmt: skip


@functools.cache
def graph() -> tb.Graph:
    """Two branches that a third node joins."""
    nodes = [
        tb.Launch(132, 256, 32, duration=3e-5, name="load"),
        tb.Launch(66, 512, 64, 32 * 1024, duration=5e-5, name=GEMM),
        tb.Launch(8, 128, 32, duration=1e-5),
    ]
    return tb.Graph(nodes, edges=[(0, 2), (1, 2)])


@functools.cache
def ways() -> tb.Sequence:
    """A program with every way to launch."""
    (half, _), rest = tb.split_sms("h200", 64)
    return tb.Sequence(
        [
            tb.Launch(132, 256, 32, stream=0, duration=1e-4, trigger=2e-5, name="produce"),
            tb.Launch(132, 256, 32, stream=0, duration=1e-4, programmatic=True, memory_wait=1e-5,
                      completion_event=3, name="consume"),
            tb.WaitEvent(3, 1),
            tb.Launch(64, 512, 32, stream=1, duration=5e-5, name="after the event"),
            tb.Launch(128, 256, 32, stream=2, non_blocking=True, duration=2e-4, partition=half),
            tb.Launch(4, 256, 32, stream=3, non_blocking=True, duration=2e-4, partition=rest,
                      name="small"),
            tb.Launch(264, 1024, 32, stream=4, duration=1e-4, cooperative=True, name="sync"),
            graph().launch(5),
            graph().launch(6, non_blocking=True),
        ]
    )  # fmt: skip


def large(launches: int = 100_000, blocks: int = 1_000_000, sms: int = 1000) -> tb.Trace:
    """A trace with times of as many launches, blocks and SMs, of 200 kernels with long names."""
    rng = np.random.default_rng(1)
    each = blocks // launches
    kernels = [
        tb.Launch(
            each, 256, 32, stream=number % 40, duration=1e-4,
            name=f"void Gemm{number % 7}<Tile<float, {number}>, {number}>" + "(P<T, U>&)" * 200,
        )
        for number in range(200)
    ]  # fmt: skip
    start = np.sort(rng.integers(0, 10**8, launches)).repeat(each)
    start += rng.integers(0, 20_000, len(start))
    end = start + rng.integers(50_000, 3_000_000, len(start))
    sm = rng.integers(0, sms, len(start)).astype(np.int32)
    for array in (start, end, sm):
        array.flags.writeable = False  # else each placement makes views that are
    placements = []
    for number in range(launches):
        own = slice(number * each, number * each + each)
        placements.append(Placement(sm[own], sm[own], start_ns=start[own], end_ns=end[own]))
    sequence = tb.Sequence([kernels[number % 200] for number in range(launches)])
    info = DeviceInfo("GPU of 1,000 SMs", sms)
    return tb.Trace(sequence, info, tuple(placements), check=False)


def _differing() -> tb.Diff:
    observed = next(
        trace
        for trace in recorded("rall")
        if not tb.compare(tb.predict(trace.sequence, "h200", "most_room"), trace).occupancy
    )
    return tb.compare(tb.predict(observed.sequence, "h200", "most_room"), observed)


@functools.cache
def _report() -> object:
    return tb.fuzz(
        "h200", "h200", "most_room", max_examples=60, max_counterexamples=1, seed=1, progress=False
    )


def _timed_observation() -> tb.Trace:
    (path, *_) = sorted((ROOT / "tests" / "traces" / "h200-timed").glob("*.jsonl*"))
    return next(trace for trace in tb.load_traces(path) if trace.sequence.timed)


def _responses() -> Responses:
    camera = tb.Launch(24, 512, 64, duration=3e-3)
    brake = tb.Launch(4, 128, 32, duration=0.5e-3)
    released = tb.periodic(
        [
            tb.Task("camera", [camera, camera], period=20e-3),
            tb.Task("brake", [brake], period=5e-3, offset=1e-3, deadline=2e-3),
        ]
    )
    trace = tb.predict(released.sequence, "xavier", issue_times=released.issue_times)
    return released.responses(trace)


def _time_diff() -> tb.TimeDiff:
    observed = _timed_observation()
    return tb.compare_times(tb.predict_as_recorded(observed, "h200"), observed)


def variants() -> tb.sm.Variants:
    rows = (("original", 21, "", 8), ("33 registers", 33, "", 6), ("loads", 21, "loads", 8))
    return tb.sm.Variants("walsh", tuple(
        tb.sm.Variant(name, "walsh", registers, order, 10 * bool(order), resident, b"")
        for name, registers, order, resident in rows
    ))  # fmt: skip


def search() -> tb.sm.Search:
    took = {"original": 2e-5, "33 registers": 3e-5, "loads": 1.9e-5}
    return tb.sm.search(variants(), lambda each: lambda: took[each.name], progress=False)


# What makes each value, by a name for files.
GALLERY: dict[str, Callable[[], object]] = {
    "sequence": timed,
    "device": lambda: tb.device("h200"),
    "device-without-gpcs": lambda: tb.device("rtx3090"),
    "device-1000": thousand,
    "device-diff": lambda: tb.compare_devices("a100", "h200"),
    "held": lambda: tb.predict(held(), "h200"),
    "held-1000": lambda: tb.predict(held(8), thousand()),
    "residents": lambda: tb.predict(held(), "h200").residents(),
    "timed": lambda: tb.predict(timed(), "h200"),
    "timed-1000": lambda: tb.predict(timed(6), thousand()),
    "observed": lambda: recorded("rall")[0],
    "observed-timed": _timed_observation,
    "large": large,
    "diff": _differing,
    "diff-1000": lambda: tb.compare(
        tb.predict(held(8), thousand()), tb.predict(held(8), thousand(), "first_fit")
    ),
    "time-diff": _time_diff,
    "score": lambda: tb.verify(recorded("rall")[:20], "h200", "round_robin"),
    "report": _report,
    "calibration": lambda: tb.calibrate("tx2", 3600.0, sequences=20, progress=False),
    "counterexample": lambda: _report().counterexamples[0],  # type: ignore[attr-defined]
    "best-order": lambda: tb.best_order([*KERNELS[:2], *KERNELS[4:]], "h200"),
    "responses": _responses,
    "program": lambda: profiled(tb.Sequence(KERNELS[:4]), "h200"),
    "explanation": lambda: tb.explain(profiled(tb.Sequence(KERNELS[:4]), "h200"), "h200"),
    "what-if": lambda: tb.what_if(tb.Sequence(KERNELS[:4]), "h200"),
    "processes": lambda: tb.predict_processes([tb.Sequence(KERNELS[:4])] * 2, "h200"),
    "meeting": lambda: tb.Meeting(tb.predict(held(), "h200"), ((0,), (1, 2)), (True, False)),
    "graph": graph,
    "partition": lambda: tb.split_sms("h200", 64)[0][0],
    "ways": ways,
    "ways-predicted": lambda: tb.predict(ways(), "h200"),
    "evenness": lambda: tb.forced_even("h200", tb.Launch(264, 1024, 32)),
    "capacity": lambda: tb.capacity(
        tb.Launch(128, 256, 168, 100 * 1024, name="workers"), "h200", beside=[SCHEDULERS]
    ),
    "capacities": lambda: tb.capacities(
        SCHEDULERS, "h200", threads=[128, 1024], carveouts=[0, 100]
    ),
    "coresidency": lambda: tb.coresident(
        [tb.Launch(128, 256, 168, 100 * 1024, name=GEMM), SCHEDULERS], "h200"
    ),
    "rank-coresidency": lambda: tb.coresident(
        tb.Sequence(
            [
                tb.Launch(
                    100,
                    1024,
                    64,
                    stream=stream,
                    gpu=rank,
                    host=rank,
                    meets=name,
                    name=name,
                    duration=1e-5,
                )
                for rank, order in enumerate(["ab", "ba"])
                for name, stream in sorted(
                    {"a": 0, "b": 1}.items(), key=lambda x: order.index(x[0])
                )
            ]
        ),
        ["h200", "h200"],
    ),
    "hang-report": lambda: tb.hang(ROOT / "tests" / "hangs" / "recorded" / "room.jsonl"),
    "coresidency-safe": lambda: tb.coresident([SCHEDULERS], "h200"),
    "characterization": lambda: tb.sm.characterize(
        ModelSm({"fp64.fma": Class(8, 2)}, reasons={"int32.add": "the compiler writes IMAD"}),
        ["fp32.fma", "fp64.fma", "int32.add"],
        repeats=1,
        warps=(1, 4, 8, 16),
        progress=False,
    ),
    "simulation": lambda: tb.sm.simulate(tb.sm.preset("KMN", blocks=28)),
    "simulation-commands": lambda: tb.sm.simulate(tb.sm.preset("KMN", blocks=56), commands=True),
    "simulations": lambda: tb.sm.simulate_many(tb.sm.preset("KMN", blocks=28)),
    "variants": variants,
    "search": search,
    "launch-configs": lambda: tb.launch_configs("h200", tb.Kernel(132 * 1024, 32)),
}
