"""Kernels in the order that the ICCD 2023 paper advises (section V-C), on a GPU.

    python tests/lab/timed/kernel_order.py --out DIR

Runs 300 sets of eight kernels, with shared and with local memory, in three orders each, some
minutes at most. Writes ``DIR/kernel-order-h100.json``, or that of the H200, and prints the table of
``docs/explanation/kernel-order.md`` with what it measured, and how far the model is off. Put the
file into ``tests/conformance/papers/measured/``, and the page has the numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from conformance.papers.kernel_order import GPUS, KINDS, SETS, file_of, predicted, programs, rows
from lab.script import parse
from tbsched.launcher.observe import Gpu
from tbsched.program.sequence import Sequence


def main() -> int:
    """Runs, writes and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=SETS, help="of kernels")
    parser.add_argument("--rehearse", choices=GPUS, help="its model plays the GPU")
    arguments = parse(parser)
    with contextlib.ExitStack() as stack:
        gpu = None if arguments.rehearse else stack.enter_context(Gpu(0))
        name = arguments.rehearse if gpu is None else named(gpu.info.name)
        sms = 132 if gpu is None else gpu.info.sms
        found = {}
        for kind in KINDS:
            asked = programs(kind, sms, arguments.sets)
            makespans = predicted(name, asked)
            found[kind] = makespans if gpu is None else observed(gpu, asked)
            off = np.abs(np.array(makespans) / np.array(found[kind]) - 1)
            print(f"{kind}: the model is off by {np.median(off):.2%} in the median, "
                  f"{np.percentile(off, 95):.2%} at 95 %")  # fmt: skip
        info = {} if gpu is None else {"gpu": gpu.info.name, **gpu.info.details}
    whole = {kind: [round(1e9 * each) for each in found[kind]] for kind in KINDS}
    (arguments.out / file_of(name)).write_text(
        json.dumps({"measured_on": info, "sets": arguments.sets, "makespans_ns": whole}) + "\n",
        "utf-8",
    )
    header, lines = rows(arguments.out)
    for line in (header, ["---"] * len(header), *lines):
        print(f"| {' | '.join(line)} |")
    return 0


def named(title: str) -> str:
    """The model of the GPU of this name."""
    for name in GPUS:
        if name.upper() in title:
            return name
    raise SystemExit(f"{title}: the page has columns for {' and '.join(GPUS)} only")


def observed(gpu: Gpu, asked: list[Sequence]) -> list[float]:
    """The makespan of each, in seconds: the least of three runs, as a host is late by chance."""
    return [min(gpu.observe(program).makespan for _ in range(3)) for program in asked]


if __name__ == "__main__":
    sys.exit(main())
