"""Simulated kernels, as what JSON can hold."""

from __future__ import annotations

from typing import Any

from tbsched.sm.results import Simulation, Simulations


def simulation_data(found: Simulation) -> dict[str, Any]:
    """What ran, the figures, the counts, and when each block ran."""
    return {
        "workload": found.workload,
        "scheduler": found.scheduler,
        "config": found.config.name,
        "ipc": found.ipc,
        "inactive": found.inactive,
        "memory_blocked": found.memory_blocked,
        "without_warps": found.without_warps,
        "l1_miss_rate": found.l1_miss_rate,
        "l2_hit_rate": found.l2_hit_rate,
        "row_hit_rate": found.row_hit_rate,
        "bank_parallelism": found.bank_parallelism,
        "latency": found.latency,
        "queueing": found.queueing,
        "counts": dict(found.counts),
        "core": found.core.tolist(),
        "start": found.start.tolist(),
        "end": found.end.tolist(),
    }


def simulations_data(found: Simulations) -> list[dict[str, Any]]:
    """Each of them, with its IPC over that of the first of the same workload and config."""
    return [
        {**simulation_data(row), "speedup": found.speedup(number)}
        for number, row in enumerate(found)
    ]
