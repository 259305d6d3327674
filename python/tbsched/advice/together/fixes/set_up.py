"""What a process sets up before its first launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.fixes.fix import Fix, Unproved

MOST_CONNECTIONS = 32  # that CUDA_DEVICE_MAX_CONNECTIONS allows


def set_up(unproved: Unproved) -> Iterator[Fix]:
    """More hardware queues, or the local memory that some kernel needs."""
    problem = unproved.problem
    spec = problem.spec
    if spec.hardware_queues < MOST_CONNECTIONS:
        more = replace(spec, hardware_queues=MOST_CONNECTIONS)
        text = f"CUDA_DEVICE_MAX_CONNECTIONS={MOST_CONNECTIONS}"
        yield replace(unproved.changed("set_up", text, {}), device=more)
    local = max(one.local_memory for one in problem.launches)
    if local > spec.local_memory_initial:
        more = replace(spec, local_memory_initial=local)
        text = f"cudaDeviceSetLimit(cudaLimitStackSize, {local}) before the first launch"
        yield replace(unproved.changed("set_up", text, {}), device=more)
