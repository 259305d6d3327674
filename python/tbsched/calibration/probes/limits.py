"""Limits of one block: the largest launches that the runtime does not refuse."""

from __future__ import annotations

from collections.abc import Callable

from tbsched.calibration.asking.lab import LEAST_REGISTERS, Lab
from tbsched.calibration.finding import Finding, KnownValues, assumed, determined
from tbsched.program.sequence import Launch

MOST_THREADS, MOST_REGISTERS, MOST_CLUSTER, MOST_SHARED = 1024, 255, 16, 2**24


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Measures the greatest block size, registers per thread, shared memory and cluster that the
    oracle accepts, each by bisection, and returns findings."""
    few = LEAST_REGISTERS

    def largest(launch: Callable[[int], Launch], low: int, high: int) -> int:
        return lab.largest(lambda value: lab.accepts(launch(value)), low, high)

    threads = largest(lambda value: Launch(1, value, few), 1, MOST_THREADS)
    registers = largest(lambda value: Launch(1, 32, value), few, MOST_REGISTERS)
    shared = largest(lambda value: Launch(1, 32, few, value, carveout=100), 0, MOST_SHARED)
    clusters = [
        size
        for size in range(2, MOST_CLUSTER + 1)
        if lab.accepts(Launch(size, 32, few, cluster=size))
    ]
    known.notes["clusters"] = clusters
    return read(threads, registers, shared, max(clusters, default=1))


def read(threads: int, registers: int, shared: int, cluster: int) -> list[Finding]:
    """Returns findings from the largest accepted value of each limit."""
    because = "the largest that was not refused"
    return [
        determined("limits.threads_per_block", threads, because),
        assumed("limits.registers_per_thread", registers, f"{because}; an SM may hold no more"),
        determined("allocation.shared_memory_per_block", shared, because),
        determined("limits.max_cluster", cluster, because)
        if cluster == MOST_CLUSTER
        else assumed("limits.max_cluster", cluster, f"{because}; a GPC may hold no more"),
    ]
