"""Kernels with blocks of 128 and 256 threads, as two GPUs recorded them.

    python tests/sm/owl/kernels.py REPORT REPORT

makes the files in ``recordings`` of what ``tests/lab/inside/addresses.py --small-blocks`` wrote on
each GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from sm.recordings.kernels import METRICS, profiled, recorded_of

FOLDER = Path(__file__).parent / "recordings"
# Their threads do the same whatever block they are in: one file for both sizes.
ANY_BLOCK = ("spmv", "kmeans", "bfs", "flux", "matvec")
EVENTS = ("rows", "access", "address", "sectors")


def file_of(name: str) -> str:
    """The file that a kernel is in, given its name with the threads of a block."""
    kernel = name.rstrip("0123456789")
    return kernel if kernel in ANY_BLOCK else name


@cache
def small_blocks(name: str) -> tb.sm.Workload:
    """A recorded kernel; a core has as many blocks as make 1,024 threads."""
    kernel = tb.sm.load_workload(FOLDER / f"{file_of(name)}.npz")
    warps = int(name[-3:]) // 32
    return replace(kernel, name=name, warps_per_block=warps, blocks_per_core=32 // warps)


def recordings(report: Path) -> Iterator[tb.sm.Workload]:
    """The kernels of a GPU's report."""
    for name, found in profiled(report, "small-blocks"):
        yield recorded_of(report, name, round(found[METRICS["instructions"]]))[0]


def main(reports: list[str]) -> None:
    """Makes the files."""
    first: dict[str, tb.sm.Workload] = {}
    for report in reports:
        for kernel in recordings(Path(report)):
            same = first.setdefault(file_of(kernel.name), kernel)
            for name in EVENTS:
                if not np.array_equal(getattr(same, name), getattr(kernel, name)):
                    raise SystemExit(f"{kernel.name} of {report}: another one differs in {name}")
    for name, kernel in first.items():
        tb.sm.save_workload(replace(kernel, name=name), FOLDER / f"{name}.npz")


if __name__ == "__main__":
    main(sys.argv[1:])
