"""Hit rates of recorded kernels in the simulator, and as ncu counted them.

    python tests/sm/recordings/hit_rates.py

It takes minutes, and writes the tables of docs/explanation/hit-rates.md. Parameters were chosen by
the probes and the kernels that are looked at; the others, and all of the second GPU, are scored.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from lab.inside.addresses import KERNELS
from sm.claims import write_tables
from sm.recordings.kernels import GPUS, Measured, measured, recorded, sms, swept

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "hit-rates.md"
SM_BYTES = 256 * 1024  # of L1 and shared memory
SCHEDULER = "greedy_oldest"
LOOKED_AT_ON = "h200"
LOOKED_AT = ("transpose", "kmeans", "fwt", "sweep20")
SWEEPS = ("sweep20", "sweep36", "sweep72")
# Profiled on the H100 with an earlier build than the one that is recorded.
OTHER_BUILD = ("spmv", "bfs")
# What nobody knows, changed one thing at a time.
VARIANTS: dict[str, dict[str, int]] = {
    "4 ways in L1": {"l1_ways": 4},
    "16 ways in L1": {"l1_ways": 16},
    "sets not hashed": {"hash_sets": 0},
    "the line that came first leaves L1": {"l1_replacement": 1},
    "any line leaves L1": {"l1_replacement": 2},
    "a place in L1 when the line comes": {"l1_miss_allocates": 0},
    "all lines of an instruction at once": {"l1_line_cycles": 0},
    "stores do not allocate": {"l1_store_allocates": 0},
    "an L1 hit takes 20 cycles": {"hit_stages": 20},
    "an L1 hit takes 50 cycles": {"hit_stages": 50},
    "L2 takes half as long": {"l2_cycles": 60},
    "L2 takes twice as long": {"l2_cycles": 240},
    "L2 fetches a sector": {"l2_fetch_sectors": 1},
    "L2 fetches a line": {"l2_fetch_sectors": 4},
    "any line leaves L2": {"l2_replacement": 2},
}
ROUND_ROBIN = "warps in turn"


class Rates(NamedTuple):
    """In percent."""

    l1: float
    l2: float


def counted(row: Measured) -> Rates:
    """As ncu counts them, L2's of what SMs received."""
    missed = row.l2_reads - row.l2_read_hits
    return Rates(100 * row.load_hits / row.loads, max(0.0, 100 * (1 - missed / row.received)))


def simulation(row: Measured, scheduler: str = SCHEDULER, **changes: int) -> tb.sm.Simulation:
    """A recorded kernel, simulated with as much L1 as it had."""
    kernel = recorded(row.kernel) if row.kernel not in SWEEPS else swept(int(row.kernel[5:]))
    gpu = tb.sm.config(f"{row.gpu}-like").changed(l1_bytes=SM_BYTES - row.shared_bytes, **changes)
    cores = sms(row.gpu, row.kernel) if row.kernel in KERNELS else np.arange(132)
    return tb.sm.simulate(kernel, scheduler, gpu, cores=cores)


def simulated(row: Measured, scheduler: str = SCHEDULER, **changes: int) -> Rates:
    """As the simulator has them."""
    found = simulation(row, scheduler, **changes)
    return Rates(100 * found.l1_profiled_hit_rate, 100 * found.l2_profiled_hit_rate)


def varied(row: Measured) -> dict[str, Rates]:
    """As shipped, which is named "", and every variant; the sweeps are too large for these."""
    if row.kernel in SWEEPS:
        return {"": simulated(row)}
    return {
        "": simulated(row),
        ROUND_ROBIN: simulated(row, "round_robin"),
        **{name: simulated(row, **changes) for name, changes in VARIANTS.items()},
    }


def looked_at(row: Measured) -> bool:
    """Whether parameters were chosen by it."""
    return row.gpu == LOOKED_AT_ON and row.kernel in LOOKED_AT


def other_build(row: Measured) -> bool:
    """Whether ncu counted another build than the recorded one."""
    return row.gpu != LOOKED_AT_ON and row.kernel in OTHER_BUILD


def span(values: Iterable[float]) -> str:
    """From the least to the greatest."""
    listed = list(values)
    return f"{min(listed):.0f} to {max(listed):.0f}"


def kernels_table(found: dict[Measured, dict[str, Rates]]) -> str:
    lines = [
        "| kernel | L1, KB | looked at | L1: ncu | simulated | off | variants | L2: ncu "
        "| simulated | off | variants |",
        "| --- | ---: | --- |" + " ---: |" * 8,
    ]
    for row, rates in found.items():
        name = row.kernel + r" \*" * other_build(row)
        cells = [name, f"{(SM_BYTES - row.shared_bytes) >> 10}", "yes" * looked_at(row)]
        for at, real in enumerate(counted(row)):
            ours = rates[""][at]
            cells += [f"{real:.1f}", f"{ours:.1f}", f"{round(ours - real, 1) + 0:+.1f}"]
            cells.append(span(each[at] for each in rates.values()) if len(rates) > 1 else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def summary_table(found: dict[Measured, dict[str, Rates]]) -> str:
    lines = [
        "| | cases | L1 within 5 points | L1 off, on average | L2 within 5 points "
        "| L2 off, on average |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    ]
    parts = {
        "looked at, H200": [row for row in found if looked_at(row)],
        "scored, H200": [row for row in found if row.gpu == "h200" and not looked_at(row)],
        "scored, H100": [row for row in found if row.gpu == "h100"],
        "scored, H100, of the recorded build": [
            row for row in found if row.gpu == "h100" and not other_build(row)
        ],
    }
    for name, rows in parts.items():
        off = [
            [abs(ours - real) for ours, real in zip(found[row][""], counted(row), strict=True)]
            for row in rows
        ]
        cells = [name, str(len(rows))]
        for column in zip(*off, strict=True):
            cells += [str(sum(each <= 5 for each in column)), f"{statistics.fmean(column):.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def variants_table(found: dict[Measured, dict[str, Rates]]) -> str:
    lines = ["| variant | L1 off, on average | L2 off, on average |", "| --- | ---: | ---: |"]
    found = {row: rates for row, rates in found.items() if len(rates) > 1}
    for name in next(iter(found.values())):
        off = [
            statistics.fmean(
                abs(rates[name][at] - counted(row)[at]) for row, rates in found.items()
            )
            for at in range(2)
        ]
        lines.append(f"| {name or 'as shipped'} | {off[0]:.1f} | {off[1]:.1f} |")
    return "\n".join(lines)


def main() -> None:
    """Runs and writes."""
    rows = [row for row in measured() if row.kernel in (*KERNELS, *SWEEPS)]
    with Pool(2) as pool:
        found = dict(zip(rows, pool.map(varied, rows, chunksize=1), strict=True))
    of_gpu = {gpu: {row: found[row] for row in found if row.gpu == gpu} for gpu in GPUS}
    tables = {"summary": summary_table(found), "variants": variants_table(found)}
    write_tables(PAGE, tables | {gpu: kernels_table(each) for gpu, each in of_gpu.items() if each})


if __name__ == "__main__":
    main()
