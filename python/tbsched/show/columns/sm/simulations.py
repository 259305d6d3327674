"""Simulated kernels, as tables."""

from __future__ import annotations

from typing import Any

from tbsched.sm.results import Simulation, Simulations


def simulation_columns(found: Simulation) -> dict[str, Any]:
    """A row per block."""
    return {
        "block": list(range(len(found.core))),
        "core": found.core,
        "start": found.start,
        "end": found.end,
    }


def simulations_columns(found: Simulations) -> dict[str, Any]:
    """A row per simulation."""
    rows = found.rows
    figures = (
        "workload", "scheduler", "ipc", "inactive", "memory_blocked", "without_warps",
        "l1_miss_rate", "l2_hit_rate", "row_hit_rate", "bank_parallelism", "latency", "queueing",
    )  # fmt: skip
    return {
        **{name: [getattr(row, name) for row in rows] for name in figures},
        "config": [row.config.name for row in rows],
        "speedup": [found.speedup(number) for number in range(len(rows))],
        "cycles": [row.counts["cycles"] for row in rows],
        "instructions": [row.counts["instructions"] for row in rows],
    }
