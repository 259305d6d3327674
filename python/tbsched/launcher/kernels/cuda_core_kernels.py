"""Kernels of cuda.core: what ObjectCode.get_kernel returns."""

from __future__ import annotations

from typing import Any

from tbsched.launcher.kernels.usage import Library, Usage, carveout_of, is_of


def _takes(kernel: object) -> bool:
    return is_of(kernel, "cuda", "attributes")


def _usage(kernel: Any) -> Usage:
    """Returns what a kernel of cuda.core uses."""

    def value(name: str) -> int:
        attribute = getattr(kernel.attributes, name)
        return int(attribute() if callable(attribute) else attribute)

    return Usage(
        name=None,
        registers=value("num_regs"),
        static_shared_memory=value("shared_size_bytes"),
        local_memory=value("local_size_bytes"),
        carveout=carveout_of(value("preferred_shared_memory_carveout")),
    )


CUDA_CORE = Library("cuda.core: a Kernel, which ObjectCode.get_kernel returns", _takes, _usage)
