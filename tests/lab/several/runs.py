"""What the scripts for several GPUs share: a run, prepared files, and what is written."""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import tbsched as tb
from lab.campaigns.campaign_speed import emulated
from tbsched.hardware.spec import DeviceSpec

Found: TypeAlias = dict[str, Any]
CONNECTIONS = 32  # the launcher sets CUDA_DEVICE_MAX_CONNECTIONS
INTERVAL = 6e-6  # seconds between two calls of a host


def command_line(text: str | None) -> argparse.ArgumentParser:
    """A parser for the parts ``prepare`` and ``run``."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("what", choices=("prepare", "run"))
    parser.add_argument("file", type=Path, help="of prepared programs")
    parser.add_argument("--gpus", type=int, default=2, help="of one host")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that prepare")
    return parser


def device_of(name: str) -> DeviceSpec:
    """A device by its name; ``emulated``: that of the emulated driver."""
    if name == "emulated":
        return emulated()
    return tb.device(name)


def prepare(
    make: Callable[[tuple[int, int, str, int]], Found], arguments: argparse.Namespace
) -> None:
    """Writes what ``make`` returns for each number, with what all have in common.

    Args:
        make: takes seed, number, device and number of GPUs.
        arguments: of the command line.
    """
    seed, device, gpus = arguments.seed, arguments.device, arguments.gpus
    asked = [(seed, number, device, gpus) for number in range(arguments.count)]
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        programs = list(pool.imap(make, asked, chunksize=4))
    found = {"seed": seed, "device": device, "gpus": gpus, "programs": programs}
    arguments.file.write_bytes(lzma.compress(json.dumps(found).encode()))


def prepared(arguments: argparse.Namespace) -> Found:
    """What :func:`prepare` wrote."""
    found: Found = json.loads(lzma.decompress(arguments.file.read_bytes()))
    return found


def predicted(trace: tb.Trace) -> Found:
    """Whether it hangs, and how many blocks of each launch begin."""
    return {"hang": trace.hang is not None, "begun": begun(trace)}


def begun(trace: tb.Trace) -> list[int]:
    """How many blocks of each launch began."""
    return [int((launch.smid >= 0).sum()) for launch in trace]


def observed(program: tb.Sequence, gpus: int) -> Found:
    """A run: whether it hung, and how many blocks of each launch began; or an error, in words."""
    begin = time.monotonic()
    try:
        trace = tb.observe(program, list(range(gpus)))
    except (tb.TbschedError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    counts = begun(trace)
    whole = all(
        count == launch.blocks for count, launch in zip(counts, program.launches, strict=True)
    )
    return {
        "hang": not (whole and all(trace.extra["met"])),
        "begun": counts,
        "ms": round((time.monotonic() - begin) * 1e3, 1),
    }


@contextmanager
def recording(path: Path) -> Iterator[Callable[[Found], None]]:
    """Opens ``.jsonl.xz``; what it yields appends a row."""
    with lzma.open(path, "wt", encoding="utf-8") as file:
        yield lambda row: print(json.dumps(row), file=file)
