"""Figures 6 to 8 of the RTAS 2020 paper, predicted, against what an H100 and an H200 did.

The recordings are those of ``tests/lab/inside/neighbours/record.py``. Predictions know each kernel
alone: how long it takes, and how much of a pipe or of DRAM it uses. Copies to and from the host are
events. A memset, or a copy within the GPU, is a kernel of the driver: here a launch whose profile
follows from its bytes. That of the vector addition was measured.
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
    """The rows of all figures."""
    with lzma.open(RECORDED / f"{gpu}.jsonl.xz", "rt") as file:
        rows = [json.loads(line) for line in file]
    return [row for row in rows if row["kind"].startswith("figure")]


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
def addition(gpu: str) -> tb.sm.KernelProfile:
    """What Nsight Compute measured of the vector addition, with 4,096 blocks."""
    text = lzma.decompress((RECORDED / f"{gpu}-ncu.csv.xz").read_bytes())
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(text)
        file.flush()
        measured = tb.sm.load_ncu(file.name, gpu)
    (profile,) = (x for x in measured if x.name == "vector_add" and x.blocks == 4096)
    return profile


def points(gpu: str) -> list[Point]:
    """All points of a GPU."""
    return [*figure6(gpu), *figures7_and_8(gpu)]


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
