"""CuPy arithmetic on temporaries of 128 MB, with CuPy's memory pool switched off."""

from collections.abc import Callable

import cupy

DEFECT = "CuPy's memory pool is switched off, so every temporary is a cudaMalloc and a cudaFree"
CAUSE = "cudaFree and cudaMalloc for every CuPy temporary"
FIX = "leave CuPy's default memory pool on"
SEPARATE = True

ROUNDS = 8


def build(variant: str) -> Callable[[], object]:
    """Return one step of sixteen element-wise kernels."""
    if variant == "defect":
        cupy.cuda.set_allocator(None)
    x = cupy.linspace(0.0, 1.0, 32 * 1024 * 1024, dtype=cupy.float32)

    def step() -> object:
        y = x
        for _ in range(ROUNDS):
            y = y * 0.5
            y = y + x
        return y

    return step
