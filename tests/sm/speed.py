"""How fast the simulator is, and how its time grows with cores, warps and work.

    python tests/sm/speed.py

It takes half a minute, and writes the tables of docs/explanation/owl.md. Times are of the
processor, of one thread, and the least of five.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tbsched as tb
from sm.claims import PAGE, write_tables
from tbsched.sm.parameters import Config
from tbsched.sm.workloads import NONE

OWL = tb.sm.config("owl-table1")
TIMES = 5


def seconds(workload: tb.sm.Workload, config: Config) -> float:
    """Returns the CPU time of one run."""

    def once() -> float:
        start = time.process_time()
        tb.sm.simulate(workload, "round_robin", config)
        return time.process_time() - start

    return min(once() for _ in range(TIMES))


def millions(workload: tb.sm.Workload, config: Config) -> float:
    """Warp instructions in a second."""
    return workload.instructions / seconds(workload, config) / 1e6


def computing() -> tb.sm.Workload:
    """Returns a workload of instructions that only compute."""
    warps = 28 * 32
    rows = np.arange(warps + 1)
    nothing = np.zeros(warps, int)
    return tb.sm.Workload("computing", 4, 8, rows, nothing + 4000, nothing + NONE, nothing)


def kernel(name: str, cores: int, **knobs: int) -> tb.sm.Workload:
    """A preset with work for each core that does not depend on how many there are."""
    return tb.sm.preset(name, **{"blocks": 16 * cores, **knobs})


def workloads_table() -> str:
    rows = [
        ("instructions that compute only", computing(), "owl-table1"),
        ("BP, the one with the most instructions per load", kernel("BP", 28), "owl-table1"),
        ("KMN", kernel("KMN", 28), "owl-table1"),
        ("PVC, the one with the fewest", kernel("PVC", 28), "owl-table1"),
        ("KMN", kernel("KMN", 132), "h200-like"),
    ]
    lines = ["| workload | simulated GPU | millions a second |", "| --- | --- | ---: |"]
    for words, workload, config in rows:
        speed = millions(workload, tb.sm.config(config))
        lines.append(f"| {words} | `{config}` | {speed:.1f} |")
    return "\n".join(lines)


def cores_table() -> str:
    lines = [
        "| cores, with as many controllers for each | work | seconds | millions a second |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for cores in (7, 14, 28, 56, 112):
        gpu = OWL.changed(cores=cores, controllers=cores * 2 // 7, mesh_width=12, mesh_height=12)
        workload = kernel("KMN", cores)
        took = seconds(workload, gpu)
        lines.append(
            f"| {cores} | {cores / 7:.0f} | {took:.2f} | {workload.instructions / took / 1e6:.1f} |"
        )
    return "\n".join(lines)


def warps_table() -> str:
    lines = ["| warps of a core | work | seconds | millions a second |"]
    lines.append("| ---: | ---: | ---: | ---: |")
    for warps in (4, 8, 16, 32, 64):
        gpu = OWL.changed(warps_per_core=warps, blocks_per_core=warps // 4)
        workload = kernel("KMN", 28, blocks=28 * warps // 2, blocks_per_core=warps // 4)
        took = seconds(workload, gpu)
        lines.append(
            f"| {warps} | {warps // 4} | {took:.2f} | {workload.instructions / took / 1e6:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measures and writes."""
    write_tables(
        PAGE,
        {"speed": workloads_table(), "cores": cores_table(), "warps": warps_table()},
    )


if __name__ == "__main__":
    main()
