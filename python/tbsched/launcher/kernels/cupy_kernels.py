"""Kernels of CuPy: RawKernel, and what RawModule.get_function returns."""

from __future__ import annotations

from typing import Any

from tbsched.launcher.kernels.usage import Library, Usage, carveout_of, is_of


def _takes(kernel: object) -> bool:
    return is_of(kernel, "cupy", "num_regs", "shared_size_bytes")


def _usage(kernel: Any) -> Usage:
    """Returns what a kernel of CuPy uses."""
    return Usage(
        name=kernel.name,
        registers=int(kernel.num_regs),
        static_shared_memory=int(kernel.shared_size_bytes),
        local_memory=int(kernel.local_size_bytes),
        carveout=carveout_of(int(kernel.preferred_shared_memory_carveout)),
    )


CUPY = Library("CuPy: a RawKernel, or a function of a RawModule", _takes, _usage)
