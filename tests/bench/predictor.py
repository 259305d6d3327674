"""Figures of the predictor. The core is called as ``predict`` calls it, with one thread."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from bench.measure import Figure, Work, give_memory_back, ratios, seconds, slopes
from bench.plain_python import waves
from real.score import loaded, recording, told
from tbsched import _core
from tbsched.advice.orders import best_order
from tbsched.hardware.catalogue import device
from tbsched.hardware.export import cpp_header
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.durations import fit_durations
from tbsched.prediction.model import prepared as prepared_for
from tbsched.prediction.predict import predict
from tbsched.program.duration import Drawn
from tbsched.program.sequence import Event, Launch, Release, Sequence
from tbsched.traces.files import load_traces

TRACES = Path(__file__).parent.parent / "traces" / "h200"
RECORDINGS = Path(__file__).parent.parent / "real" / "recordings" / "h200"
H200 = device("h200")
GRID = Launch(100_000, 64, 16, carveout=100)
LITERAL = "the literal Algorithm 1 in C++, -O3, one thread"


def prepared(spec: DeviceSpec, policy: str) -> tuple[_core.Model, _core.InitialState]:
    """The device under the policy and its first latent state, for the core."""
    model, _, states = prepared_for(spec, policy)
    return model, next(iter(states.values()))


def core(*events: Event, spec: DeviceSpec = H200, policy: str | None = None) -> Work:
    """The core's prediction of a sequence, without what Python adds to it."""
    model, state = prepared(spec, policy or spec.policy)
    sequence = Sequence(events)
    ready = _core.Sequence(events)
    if sequence.timed:
        return lambda: _core.predict_timeline(model, ready, state, None, None, 0, None, [], None)
    return lambda: _core.predict(model, ready, state, False)


def against_literal() -> Iterator[Figure]:
    """The device's own policy against Algorithm 1, step by step."""
    timed = dataclasses.replace(GRID, duration=1e-6)
    for name, events in (
        ("10^5 blocks in waves, with durations", (timed,)),
        ("10^5 blocks in waves, released", (GRID, Release(0))),
    ):
        pair = core(*events, policy="algorithm1"), core(*events)
        yield Figure(name, ratios(*pair, rounds=5), ">= 50", LITERAL)

    # An SM is asked, filled and emptied once a wave, however few blocks it holds.
    for per_sm, threads in ((1, 1024), (2, 512), (8, 128)):
        grid = Launch(20_000, threads, 64)
        pair = core(grid, Release(0), policy="algorithm1"), core(grid, Release(0))
        name = f"2*10^4 blocks in waves of {per_sm} per SM, released"
        yield Figure(name, ratios(*pair, rounds=5), ">= 20", LITERAL)
    own = dataclasses.replace(grid, duration=(1e-6,) * grid.blocks)
    pair = core(own, policy="algorithm1"), core(own)
    name = "2*10^4 blocks in waves of 8 per SM, each with a duration of its own"
    yield Figure(name, ratios(*pair, rounds=5), ">= 20", LITERAL)

    recorded = [_core.Sequence(t.sequence.events) for t in load_traces(TRACES / "rall.jsonl.xz")]

    def mixed(policy: str) -> Work:
        model, state = prepared(H200, policy)
        return lambda: _core.predict_many(model, recorded, state, 0, False, 1)

    values = ratios(mixed("algorithm1"), mixed("hopper"), rounds=5)
    yield Figure("recorded mixed launches (rall)", values, ">= 10", LITERAL)
    for launches in (1, 2, 5):
        for blocks in (1, 5):
            events = [Launch(blocks, 128, 32)] * launches
            values = ratios(core(*events, policy="algorithm1"), core(*events), times=300)
            yield Figure(f"launches: {launches}, of {blocks} blocks", values, ">= 1", LITERAL)
    random = Random(5)
    values = tuple(
        statistics.median(
            ratios(core(*events, policy="algorithm1"), core(*events), rounds=5, times=60)
        )
        for events in (small_launches(random) for _ in range(100))
    )
    yield Figure("100 random cases of 1 to 5 small launches", values, "each >= 1", LITERAL)


def small_launches(random: Random) -> list[Launch]:
    """One to five launches, of up to 20 blocks each."""
    return [
        Launch(
            blocks=random.randint(1, 20),
            threads=random.choice((32, 64, 128, 256, 512, 1024)),
            registers=random.choice((16, 32, 64)),
            shared_memory=random.choice((0, 0, 1024, 30_000)),
            carveout=random.choice((None, 100)),
        )
        for _ in range(random.randint(1, 5))
    ]


def incremental() -> Iterator[Figure]:
    """The C++ interface, a block at a time; left out where there is nothing to build it with."""
    if shutil.which("cmake") is None or shutil.which(os.environ.get("CXX", "c++")) is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "h200.h").write_text(cpp_header(H200), "utf-8")
        source = Path(__file__).parent / "incremental"
        options = ("-S", source, "-B", folder, f"-DH200_HEADER_FOLDER={folder}")
        for command in (("cmake", *options), ("cmake", "--build", folder, "--parallel", "2")):
            subprocess.run(command, check=True, capture_output=True)
        program = Path(folder, "incremental")
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    values = tuple(map(float, printed.split()))
    yield Figure("a block leaves, one is placed, in C++", values, ">= 1", LITERAL)


def against_python() -> Iterator[Figure]:
    """Blocks per second against plain Python, which gets fewer of them: it would take minutes."""
    fewer = dataclasses.replace(GRID, blocks=2_000)
    fast = core(GRID, Release(0))
    found = predict(Sequence([fewer, Release(0)]), H200, "algorithm1")[0].final_smid
    assert found is not None
    assert waves(H200, fewer) == found.tolist()
    fast()
    values = tuple(
        seconds(lambda: waves(H200, fewer)) / fewer.blocks * GRID.blocks / seconds(fast)
        for _ in range(5)
    )
    yield Figure("blocks in waves", values, ">= 2000", "Algorithm 1 in plain Python")


def enlarged(sms: int) -> DeviceSpec:
    """An H200 with more SMs, in eight GPCs."""
    tpcs = sms // 16
    return dataclasses.replace(
        H200,
        name="model",
        sms=sms,
        gpcs=tuple(tuple(range(gpc * tpcs, (gpc + 1) * tpcs)) for gpc in range(8)),
        sm_preference=(*range(0, sms, 2), *range(1, sms, 2)),
    )


def against_memset() -> Iterator[Figure]:
    """One launch that fills a large device, against writing as many numbers: all in new memory."""
    blocks = 1_000_000
    large = enlarged(31_264)
    launch = Launch(blocks, 32, 16, carveout=100)
    for policy in ("ampere", "hopper"):
        values = ratios(
            core(launch, spec=large, policy=policy),
            lambda: np.full(blocks, -1, np.int32),
            rounds=15,
            before=give_memory_back,
        )
        yield Figure(f"10^6 blocks on 31,264 SMs, {policy}", values, "<= 4", "one memset")


def mixes() -> Iterator[Figure]:
    """Four streams of launches whose blocks end one by one, against a launch for each block."""
    launch = Launch(1024, 256, 32)
    mix = [
        dataclasses.replace(launch, stream=k % 4, duration=Drawn("uniform", 1e-4, 5e-5, k))
        for k in range(24)
    ]
    single = dataclasses.replace(launch, blocks=1, duration=1e-4)
    alone = [dataclasses.replace(single, stream=k % 4) for k in range(24 * 1024)]
    values = ratios(core(*mix), core(*alone))
    yield Figure("blocks of a mix, each ending by itself", values, "<= 1", "a launch for each")


def recorded_programs() -> Iterator[Figure]:
    """Recorded programs with fitted durations, and each of them on eight GPUs at once."""
    for name in ("cupy_tail", "gemm_streams", "launch_bound", "sync_in_loop"):
        program, spec = told(name, "a", loaded(recording(RECORDINGS, name, "a")), H200)
        fitted = fit_durations(program, spec)
        events, gaps = fitted.sequence.events, [round(gap * 1e9) for gap in fitted.host]
        ready = _core.Sequence(events)

        def after_gaps(policy: str, ready: Any = ready, gaps: Any = gaps, spec: Any = spec) -> Work:
            one = prepared(spec, policy)
            return lambda: _core.predict_timeline(
                one[0], ready, one[1], None, gaps, 0, None, [], None
            )

        pair = after_gaps("algorithm1"), after_gaps("hopper")
        yield Figure(f"recorded program {name}", ratios(*pair, times=3), ">= 1", LITERAL)
        values = on_eight_gpus(spec, events, gaps, after_gaps("hopper"))
        yield Figure(f"{name} on 8 GPUs", values, "<= 1.2", "8 times one GPU")


def on_eight_gpus(
    spec: DeviceSpec, events: tuple[Event, ...], gaps: list[int], single: Work
) -> tuple[float, ...]:
    """The same program on each of eight GPUs at once, against eight predictions of it."""
    each = [
        dataclasses.replace(event, gpu=gpu, host=gpu)  # type: ignore[call-arg]
        for gpu in range(8)
        for event in events
    ]
    whole, gpus = _core.Sequence(Sequence(each).events), [prepared(spec, "hopper")] * 8
    return ratios(
        lambda: _core.predict_gpus(gpus, whole, None, gaps * 8, 0, None),
        lambda: [single() for _ in range(8)],
    )


def meetings() -> Iterator[Figure]:
    """10^4 launches in four streams on each of eight GPUs; every tenth is of a collective."""
    random = Random(1)
    grids = [random.choice((8, 32, 132, 264, 400)) for _ in range(10_000)]
    alone = [
        Launch(24, 544, 96, 103_808, stream=0, cluster=4, duration=2e-5)
        if number % 10 == 9
        else Launch(blocks, 256, 64, stream=random.randrange(4), duration=1e-5)
        for number, blocks in enumerate(grids)
    ]
    each = [
        dataclasses.replace(
            launch, gpu=gpu, host=gpu, meets=f"all {number}" if launch.cluster > 1 else None
        )
        for gpu in range(8)
        for number, launch in enumerate(alone)
    ]
    one = prepared(H200, "hopper")
    single, whole = _core.Sequence(alone), _core.Sequence(each)
    interval = 4_000  # ns
    values = ratios(
        lambda: _core.predict_gpus([one] * 8, whole, None, None, interval, None),
        lambda: [
            _core.predict_timeline(one[0], single, one[1], None, None, interval, None, [], None)
            for _ in range(8)
        ],
        rounds=3,
    )
    name = "10^4 launches on each of 8 GPUs, 1,000 of which meet"
    yield Figure(name, values, "<= 1.2", "8 times one GPU")


def linearity() -> Iterator[Figure]:
    """Slopes of log(time) over log(size)."""
    sizes = [10**k for k in range(3, 8)]
    grids = [(n, core(dataclasses.replace(GRID, blocks=n), Release(0))) for n in sizes]
    yield Figure("blocks, 10^3 to 10^7", slopes(grids), "0.95 to 1.05", "a line")

    def launches(count: int) -> Work:
        events: list[Event] = []
        for number in range(count):
            events.append(Launch(20, 128, 32, carveout=100))
            if number >= 4:
                events.append(Release(number - 4))
        return core(*events)

    rows = [(n, launches(n)) for n in (10, 100, 1_000, 10_000, 100_000)]
    yield Figure("launches, 10 to 10^5", slopes(rows), "0.95 to 1.05", "a line")

    def waiting(count: int) -> Work:
        """Launches each of which needs the whole GPU wait for one that does, and go in turn."""
        whole = Launch(H200.sms, 64, 16, H200.shared_memory_per_block)
        return core(*[whole] * count, *map(Release, range(count)))

    rows = [(n, waiting(n)) for n in (10, 100, 1_000, 10_000, 100_000)]
    yield Figure("launches that wait, 10 to 10^5", slopes(rows), "0.95 to 1.05", "a line")


PEAK = """
from pathlib import Path
from bench.predictor import GRID, core, dataclasses
work = core(dataclasses.replace(GRID, blocks=10**7))
core(GRID)()
def peak():
    rows = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) * 1024 for row in rows if row.startswith("VmHWM"))
before = peak()
work()
print((peak() - before) / (4 * 10**7))
"""
IMPORTS = """
from time import perf_counter
begin = perf_counter()
import numpy
between = perf_counter()
import tbsched
print((perf_counter() - between) / (between - begin))
"""


def printed(program: str, rounds: int) -> tuple[float, ...]:
    """The number that a Python program of its own prints, of each round."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    return tuple(
        float(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)
        for _ in range(rounds)
    )


def of_python() -> Iterator[Figure]:
    """Memory, import, what a call from Python adds, and what threads bring."""
    yield Figure("peak memory of 10^7 blocks", printed(PEAK, 3), "about 1", "the result array")
    yield Figure("import tbsched", printed(IMPORTS, 7), "<= 0.1", "import numpy")

    launches = [Launch(66, 512, 32), Launch(66, 256, 32, 24 * 1024), Launch(1, 256, 32)]
    sequence, call, times = Sequence(launches), core(*launches), 1_000

    def overhead() -> float:
        def repeated(work: Work) -> float:
            return seconds(lambda: [work() for _ in range(times)]) / times

        return (repeated(lambda: predict(sequence, H200)) - repeated(call)) / 20e-6

    values = tuple(overhead() for _ in range(7))
    yield Figure("predict of 3 launches, beyond the core", values, "<= 1", "20 microseconds")

    model, state = prepared(H200, "hopper")
    recorded = [
        _core.Sequence(t.sequence.events) for t in load_traces(TRACES / "rall.jsonl.xz")
    ] * 4

    def many(threads: int) -> Work:
        return lambda: _core.predict_many(model, recorded, state, 0, False, threads)

    cores = os.cpu_count() or 1
    values = ratios(many(1), many(cores))
    yield Figure(f"predict_many, {cores} threads", values, f"about {cores}", "one thread")


def loading() -> Iterator[Figure]:
    """A file of recorded launches, against predicting them."""
    path = TRACES / "mixed.jsonl.xz"
    model, state = prepared(H200, "hopper")
    recorded = [_core.Sequence(t.sequence.events) for t in load_traces(path)]
    values = ratios(
        lambda: load_traces(path),
        lambda: _core.predict_many(model, recorded, state, 0, False, 1),
        rounds=5,
    )
    yield Figure("45,074 recorded launches, loaded", values, "<= 10", "predicting them")


def around_the_core() -> Iterator[Figure]:
    """What users ask beside predictions, as a multiple of the predictions that it needs."""
    kernels = [Launch(50 + 13 * k, 256, 32, duration=(k + 1) * 1e-4) for k in range(7)]
    model, state = prepared(H200, "hopper")
    orders = [_core.Sequence(order) for order in itertools.permutations(kernels)]

    def search() -> object:
        return best_order(kernels, H200)

    def every() -> object:
        return _core.predict_many(model, orders, state, 0, False, 1)

    row = "best_order of 7 kernels"
    yield Figure(row, ratios(search, every, rounds=5), "<= 1", "5,040 predictions, one thread")
    yield Figure(row, tuple(seconds(search) / 0.3 for _ in range(5)), "<= 1", "0.3 seconds")

    some = dataclasses.replace(GRID, blocks=GRID.blocks // 100, duration=1e-5)
    for name, events in (
        ("in 1 launch", [GRID, Release(0)]),
        ("in 1 launch with durations", [dataclasses.replace(GRID, duration=1e-6)]),
        ("in 100 launches", [dataclasses.replace(some, duration=None)] * 100),
        ("in 100 launches with durations", [some] * 100),
    ):
        sequence = Sequence(events)
        trace = predict(sequence, H200)
        views: list[tuple[str, Work]] = [("str", lambda t=trace: str(t))]
        if sequence.timed:
            views.append(("timeline", lambda t=trace: t.timeline))
        for view, work in views:
            values = ratios(work, lambda s=sequence: predict(s, H200))
            yield Figure(f"{view} of 10^5 blocks {name}", values, "<= 10", "predicting them")


def figures() -> Iterator[Figure]:
    """All of them."""
    yield from against_literal()
    yield from incremental()
    yield from against_python()
    yield from against_memset()
    yield from mixes()
    yield from recorded_programs()
    yield from meetings()
    yield from linearity()
    yield from loading()
    yield from of_python()
    yield from around_the_core()
