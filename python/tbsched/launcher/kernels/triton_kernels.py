"""Kernels of Triton: what a launch, or warmup(), returns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tbsched.launcher.kernels.cubins import usage_in
from tbsched.launcher.kernels.usage import Library, Usage, is_of

_WARP = 32


def _takes(kernel: object) -> bool:
    return is_of(kernel, "triton", "asm", "metadata")


def _usage(kernel: Any) -> Usage:
    """Returns what a kernel of Triton uses."""
    metadata = kernel.metadata
    name = str(metadata.name)
    compiled = usage_in(kernel.asm["cubin"], name, Path(f"Triton's cubin of {name}"))
    cluster = math.prod(getattr(metadata, "cluster_dims", None) or (metadata.num_ctas,))
    return Usage(
        name=name,
        registers=compiled.registers,
        static_shared_memory=compiled.static_shared_memory,
        dynamic_shared_memory=int(metadata.shared),
        local_memory=compiled.local_memory,
        threads=int(metadata.num_warps) * _WARP,
        cluster=int(cluster),
    )


TRITON = Library(
    "Triton: the compiled kernel, which kernel[grid](...) or kernel.warmup(...) returns",
    _takes,
    _usage,
)
