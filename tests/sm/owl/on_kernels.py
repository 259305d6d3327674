"""OWL's schedulers on recorded kernels.

    python tests/sm/owl/on_kernels.py

It takes minutes, and writes a table of docs/explanation/owl.md.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.progress import track

import tbsched as tb
from lab.inside.addresses import KERNELS, SMALL_BLOCKS
from sm.claims import PAGE, write_tables
from sm.owl.kernels import small_blocks
from sm.recordings.kernels import recorded

GPU = tb.sm.config("owl-table1")
FIRST = GPU.changed(prefetch_stop=1)  # the first of the paper's two prefetch schemes
OVER = ("two_level", "cta_aware", "locality", "bank_parallel", "owl")
MEMORY_INTENSIVE = 1.4  # times as fast with a perfect L1: the paper's Type 1
PAPER = (14.0, 14.0, 25.0, 31.0, 33.0)


class Row(NamedTuple):
    """What a kernel gains over round robin, in %, and what it is like with that."""

    name: str
    threads: int
    pmem: float
    cinv: float  # %
    l1_misses: float  # %
    gains: tuple[float, ...]  # of OVER, of owl with the first scheme, and of a perfect L2


def kernels() -> dict[str, tb.sm.Workload]:
    """Those with small blocks, and the others."""
    found = {name: small_blocks(name) for name in SMALL_BLOCKS}
    return found | {name: recorded(name) for name in KERNELS}


def row_of(name: str, kernel: tb.sm.Workload) -> Row:
    """One kernel."""
    base = tb.sm.simulate(kernel, "round_robin", GPU)
    runs = [tb.sm.simulate(kernel, scheduler, GPU) for scheduler in OVER]
    runs.append(tb.sm.simulate(kernel, "owl", FIRST))
    runs += [tb.sm.simulate(kernel, scheduler, GPU) for scheduler in ("perfect_l2", "perfect_l1")]
    gains = [100 * (run.ipc / base.ipc - 1) for run in runs]
    return Row(
        name.rstrip("0123456789"),
        32 * kernel.warps_per_block,
        runs[-1].ipc / base.ipc,
        100 * base.inactive,
        100 * base.l1_miss_rate,
        tuple(gains[:-1]),
    )


def table(rows: list[Row]) -> str:
    """By what they could gain, and the averages."""
    heads = [*(f"`{name}`" for name in OVER), "`owl`, first scheme", "`perfect_l2`"]
    lines = [
        "| kernel | threads | PMEM | CINV, % | L1 misses, % | " + " | ".join(heads) + " |",
        "| --- |" + " ---: |" * (4 + len(heads)),
    ]

    def line(words: list[str], gains: tuple[float, ...]) -> None:
        lines.append("| " + " | ".join([*words, *(f"{gain:+.1f}" for gain in gains)]) + " |")

    for row in sorted(rows, key=lambda row: -row.pmem):
        figures = [f"{row.pmem:.2f}", f"{row.cinv:.0f}", f"{row.l1_misses:.0f}"]
        line([row.name, f"{row.threads:,}", *figures], row.gains)
    few = [row for row in rows if row.threads <= 256]
    intensive = [row for row in few if row.pmem >= MEMORY_INTENSIVE]
    averages = {
        f"mean of {len(few)}, 128 and 256 threads": few,
        f"of these the {len(intensive)} of PMEM 1.4 or more": intensive,
    }
    for words, some in averages.items():
        columns = zip(*(row.gains for row in some), strict=True)
        line([words, "", "", "", ""], tuple(map(statistics.fmean, columns)))
    lines.append(
        "| the paper, mean of 19 | | 2.58 | 62 | | "
        + " | ".join(f"{x:+.0f}" for x in PAPER)
        + " | | |"
    )
    return "\n".join(lines)


def main() -> None:
    """Runs and writes."""
    rows = [row_of(name, kernel) for name, kernel in track([*kernels().items()])]
    write_tables(PAGE, {"kernels": table(rows)})


if __name__ == "__main__":
    main()
