"""Figures 6 to 9 of the RTAS 2020 paper, predicted, against what an H100 and an H200 did.

The recordings are those of ``tests/sm/neighbours``. Predictions know each kernel alone: how long
it takes, and how much of a pipe or of DRAM it uses. Copies to and from the host are events. A
memset, or a copy within the GPU, is a kernel of the driver: here a launch whose profile follows
from its bytes. Those of the vector addition and of Figure 9's kernels were measured.
"""

from __future__ import annotations

import functools
import json
import lzma
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tbsched as tb
from tbsched.prediction.neighbours.profiles import RESOURCES
from tbsched.prediction.neighbours.slowing import demand_of

RECORDED = Path(__file__).parents[2] / "sm" / "neighbours"
GPUS = ("h100", "h200")
MB = 1 << 20
COPIED = 50 * MB
PART = 3 * 16384  # bytes that a block of the addition touches
DRAM = {"h100": 3.35e12, "h200": 4.8e12}  # bytes per second, by NVIDIA
# Blocks of 8 warps do one kind of work in the pipe of that name, an instruction in so many clocks.
PIPES = {"fp64": ("fp64", 2), "logic": ("logic", 2), "fp32": ("multiply", 1)}
PAIRS = (("fp64", "logic"), ("fp32", "fp64"), ("fp32", "logic"))
BESIDE = {"set": "memset", "d2d": "copy in the GPU", "h2d": "copy from the host",
          "d2h": "copy to the host"}  # fmt: skip
FOOTPRINTS = (50, 100, 200, 500)  # MB, larger than what L2 holds
# Victims of Figure 9, on one SM. The others read from L2, on 15 SMs. All have 8 blocks per SM.
VICTIMS = {("reads", "near"): "reads L2", ("gather", "near"): "gathers from L2",
           ("chase", "near"): "follows pointers in L2", ("reads", "far"): "reads DRAM"}  # fmt: skip
OTHERS = ("reads", "near")
BLOCKS = 8
WHERE = {"other": "another GPC", "same": "its GPC"}
L2_AND_DRAM = slice(RESOURCES.index("l2"), None)
FEW = (1, 3, 7)  # SMs of another GPC, that hardly slow the victim: what it needs is in L2 then


@dataclass(frozen=True)
class Point:
    """A point of a figure: how many times as long as alone, measured and predicted."""

    figure: str
    case: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """The relative error of the prediction; above 0 where it is too high."""
        return self.predicted / self.measured - 1


@functools.cache
def recorded(gpu: str) -> list[dict[str, Any]]:
    """All rows of a GPU's recording."""
    with lzma.open(RECORDED / f"{gpu}.jsonl.xz", "rt") as file:
        return [json.loads(line) for line in file]


def figure6(gpu: str) -> Iterator[Point]:
    """16 warps of which half do something else, compared with 8 of the slower half alone."""
    took = {
        (row["name"].removeprefix("halves_"), row["threads"]): statistics.median(row["runs"]) / 1e9
        for row in recorded(gpu)
        if row["kind"] == "figure6"
    }
    for pair in PAIRS:
        launches, profiles = [], {}
        for kind in pair:
            pipe, clocks = PIPES[kind]
            busy = took[f"{kind}_{kind}", 512] / 2  # 16 warps fill the pipe
            work = {pipe: busy, "issue": busy / clocks}
            profiles[kind] = tb.sm.KernelProfile(kind, work)
            launches.append(
                tb.Launch(
                    1, 256, 32, carveout=100, stream=len(launches), name=kind,
                    duration=took[f"{kind}_{kind}", 256], partition=tb.Partition((0,)),
                )
            )  # fmt: skip
        alone = max(took[f"{kind}_{kind}", 256] for kind in pair)
        both = tb.predict(tb.Sequence(launches), gpu, interference="measured", profiles=profiles)
        name = "_".join(pair)
        yield Point(
            "6", f"{pair[0]} beside {pair[1]}", took[name, 512] / alone, both.makespan / alone
        )


def figures7_and_8(gpu: str) -> Iterator[Point]:
    """An addition beside copies or memsets of 50 MB, compared with it alone."""
    rows = [row for row in recorded(gpu) if row["kind"] == "figure8"]
    for what, words in BESIDE.items():
        for megabytes in FOOTPRINTS:
            spans, blocks = (
                {
                    row["streams"]: statistics.median(run[which] for run in row["runs"])
                    for row in rows
                    if (row["what"], row["footprint"]) == (what, megabytes * MB)
                }
                for which in (0, 1)
            )
            add = tb.Launch(
                -(-megabytes * MB // PART), 256, 16, stream=0, name="vector_add",
                duration=blocks[0] / 1e9,
            )  # fmt: skip
            alone, beside = (span(gpu, what, add, copies) for copies in (0, 4))
            yield Point("7 and 8", f"{words}, {megabytes} MB", spans[1] / spans[0], beside / alone)


def span(gpu: str, what: str, add: tb.Launch, copies: int) -> int:
    """Nanoseconds from the addition's first block to its last, where so many copies go on."""
    events: list[tb.Launch | tb.Copy] = []
    known: dict[str, Any] = {}
    if what in ("h2d", "d2h"):
        events = [tb.Copy(COPIED, what, stream=1)] * copies
    else:
        copy, profile = driver_kernel(gpu, what)
        events = [copy] * copies
        profiles = {"copy": profile, "vector_add": addition(gpu)}
        known = {"interference": "measured", "profiles": profiles}
    trace = tb.predict(tb.Sequence([*events[:1], add, *events[1:]]), gpu, **known)
    number = trace.sequence.launches.index(add)
    start_ns, end_ns = trace[number].start_ns, trace[number].end_ns
    assert start_ns is not None
    assert end_ns is not None
    return int(end_ns.max() - start_ns.min())


def driver_kernel(gpu: str, what: str) -> tuple[tb.Launch, tb.sm.KernelProfile]:
    """A memset or a copy as the launch of the driver that it is: blocks of 8 KB."""
    spec = tb.device(gpu)
    moved = 1 if what == "set" else 2  # a copy reads, too
    blocks = COPIED // spec.copy_block_bytes
    at_once = 16 * spec.sms
    duration = moved * COPIED / DRAM[gpu] / blocks * at_once  # DRAM is what it waits for
    work = {"dram": moved * spec.copy_block_bytes / (DRAM[gpu] / spec.sms)}
    launch = tb.Launch(blocks, 128, 16, stream=1, name="copy", duration=duration)
    return launch, tb.sm.KernelProfile("copy", work, memory_wait=0.9 * duration, far=1.0)


@functools.cache
def profiles_of(gpu: str) -> tuple[tb.sm.KernelProfile, ...]:
    """What Nsight Compute measured of each kernel."""
    text = lzma.decompress((RECORDED / f"{gpu}-ncu.csv.xz").read_bytes())
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(text)
        file.flush()
        return tb.sm.load_ncu(file.name, gpu)


def addition(gpu: str) -> tb.sm.KernelProfile:
    """Returns the profile of the vector addition, with 4,096 blocks."""
    (profile,) = (x for x in profiles_of(gpu) if x.name == "vector_add" and x.blocks == 4096)
    return profile


def figure9(gpu: str) -> Iterator[Point]:
    """A victim beside 15 SMs that read from L2, compared with it beside few in another GPC."""
    for victim, words in VICTIMS.items():
        beside, alone = beside_readers(gpu, victim)
        for where, place in WHERE.items():
            launches, profiles = bodies(gpu, victim, where)
            yield Point(
                "9", f"{words}, others in {place}",
                alone["victim"] / beside[f"{where} GPC 15"][0],
                tb.sm.slowdowns(launches, gpu, profiles)[0],
            )  # fmt: skip


def with_a_limit(gpu: str) -> Iterator[Point]:
    """The same in the victim's GPC, if waits there grew with a queue on the way of a GPC to L2.

    The queue is taken to be as long as it must be for the readers to be as slow as they were, which
    no prediction knows.
    """
    for victim, words in VICTIMS.items():
        beside, alone = beside_readers(gpu, victim)
        launches, profiles = bodies(gpu, victim, "same")
        waits = [
            demand_of(profiles[str(one.name)], one, tb.device(gpu))[1][L2_AND_DRAM]
            for one in launches
        ]
        longer = (alone["others"] / beside["other GPC 15"][1] - 1) / sum(waits[1])
        yield Point(
            "9", f"{words}, with a limit", alone["victim"] / beside["same GPC 15"][0],
            1 + sum(waits[0]) * longer,
        )  # fmt: skip


def beside_readers(
    gpu: str, victim: tuple[str, str]
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Returns rates per SM of the victim and the readers: by where these are, and of each alone."""
    pair = [[*victim, BLOCKS], [*OTHERS, BLOCKS]]
    found = {
        row["where"]: [statistics.median(run[k][0] for run in row["runs"]) for k in (0, 1)]
        for row in recorded(gpu)
        if row["kind"] == "steady" and "where" in row and [of[:3] for of in row["of"]] == pair
    }
    few = zip(*(found[f"other GPC {count}"] for count in FEW), strict=True)
    return found, dict(zip(("victim", "others"), map(max, few), strict=True))


def bodies(
    gpu: str, victim: tuple[str, str], where: str
) -> tuple[list[tb.Launch], dict[str, tb.sm.KernelProfile]]:
    """The victim on one SM and the readers on 15, each with what it needs alone."""
    gpcs = next(row["sms"] for row in recorded(gpu) if row["kind"] == "gpcs")
    own, other = sorted(gpc for gpc in gpcs if len(gpc) >= 16)[:2]
    _, alone = beside_readers(gpu, victim)
    readers = (own if where == "same" else other)[1:16]
    found = [
        body(gpu, name, of, sms, alone[name])
        for name, of, sms in (("victim", victim, own[:1]), ("others", OTHERS, readers))
    ]
    return [launch for launch, _ in found], {profile.name: profile for _, profile in found}


def body(
    gpu: str, name: str, of: tuple[str, str], sms: list[int], rate: float
) -> tuple[tb.Launch, tb.sm.KernelProfile]:
    """The launch of a kernel on some SMs, and its profile at that rate of an SM.

    Nsight Compute measured it with 4 blocks on every SM, which slow each other; where it did not on
    an H200, the profile is that of the H100.
    """
    near_and_far = [[x for x in profiles_of(one) if x.name == of[0]] for one in (gpu, "h100")]
    measured_on = gpu if near_and_far[0] else "h100"
    profile = (near_and_far[0] or near_and_far[1])[of[1] == "far"]
    (runs,) = (
        [run[0] for run in row["runs"]]
        for row in recorded(measured_on)
        if row["kind"] == "steady" and row["of"] == [[*of, 4, None]]
    )
    measured, _, _, nanoseconds = (statistics.median(column) for column in zip(*runs, strict=True))
    more = (rate / BLOCKS) / (measured / 4)
    work = {resource: need * more for resource, need in profile.work.items()}
    launch = tb.Launch(
        BLOCKS * len(sms), 128, 32, carveout=100, name=name, duration=nanoseconds / 1e9,
        partition=tb.Partition(sorted(sms)),
    )  # fmt: skip
    return launch, tb.sm.KernelProfile(name, work, profile.memory_wait * more, profile.far)


def points(gpu: str) -> list[Point]:
    """All points of a GPU."""
    return [*figure6(gpu), *figures7_and_8(gpu), *figure9(gpu)]


def rows() -> tuple[list[str], list[list[str]]]:
    """The header and the rows of the page's table."""
    header = ["figure", "case"]
    for gpu in GPUS:
        header += [f"{gpu.upper()}: measured", "predicted", "error"]
    lines = []
    for both in zip(*map(points, GPUS), strict=True):
        line = [both[0].figure, both[0].case]
        for point in both:
            line += [
                f"{point.measured:.2f}",
                f"{point.predicted:.2f}",
                f"{100 * point.error:+.0f} %",
            ]
        lines.append(line)
    return header, lines
