"""Simulated kernels, as text."""

from __future__ import annotations

from rich.table import Table

from tbsched.show.text.tables import render, table_of
from tbsched.show.words import counted
from tbsched.sm.results import Simulation, Simulations

_ROWS_SHOWN = 60


def simulation_short(found: Simulation) -> str:
    """What ran, and how fast."""
    return (
        f"{found.workload} with {found.scheduler} on {found.config.name}: {found.ipc:.3f} warp "
        f"instructions a cycle"
    )


def simulation_text(found: Simulation) -> str:
    """A row per figure."""
    return f"{simulation_short(found)}\n{render(figures_table(found))}"


def figures_table(found: Simulation) -> Table:
    """What it counted, and what follows from it."""
    share = [
        ("issue slots without an instruction", found.inactive),
        ("time that all warps of a core wait for memory", found.memory_blocked),
        ("time that a core has no warp", found.without_warps),
        ("L1 misses, of lines loaded", found.l1_miss_rate),
        ("L2 hits, of lines asked for", found.l2_hit_rate),
        ("row hits, of lines read and written", found.row_hit_rate),
    ]
    rows = [(what, f"{100 * value:.1f} %") for what, value in share]
    rows += [
        ("banks with requests, while any has", f"{found.bank_parallelism:.1f}"),
        ("core cycles from an L1 miss to its line", f"{found.latency:.0f}"),
        ("DRAM cycles from a read's arrival to its command", f"{found.queueing:.0f}"),
    ]
    counts = ((name.replace("_", " "), f"{value:,}") for name, value in found.counts.items())
    return table_of(("figure", "value"), [*rows, *counts])


def simulations_short(found: Simulations) -> str:
    """How many there are."""
    return counted(len(found), "simulation")


def simulations_text(found: Simulations) -> str:
    """A row per simulation."""
    table, more = simulations_table(found)
    return "\n".join(filter(None, [render(table), more]))


def simulations_table(found: Simulations) -> tuple[Table, str]:
    """A row per simulation; and how many are left out, in words."""
    rows = [
        (
            row.workload, row.config.name, row.scheduler, f"{row.ipc:.3f}",
            f"{found.speedup(number):.2f}", f"{100 * row.l1_miss_rate:.1f}",
            f"{100 * row.l2_hit_rate:.1f}", f"{100 * row.row_hit_rate:.1f}",
            f"{row.bank_parallelism:.1f}", f"{row.latency:.0f}",
            f"{100 * row.memory_blocked:.1f}",
        )
        for number, row in enumerate(found.rows[:_ROWS_SHOWN])
    ]  # fmt: skip
    headings = (
        "workload", "config", "scheduler", "IPC", "to the first", "L1 misses, %", "L2 hits, %",
        "row hits, %", "banks", "latency", "blocked, %",
    )  # fmt: skip
    left = len(found) - len(rows)
    more = f"and {counted(left, 'simulation')} more" if left else ""
    return table_of(headings, rows, left=(0, 1, 2)), more
