"""A kernel that streams through memory and uses neither shared memory nor the L1 cache."""

from collections.abc import Callable

import cupy

SUSPECT = "ask for another split of L1 cache and shared memory (the carve-out)"

SOURCE = r"""
extern "C" __global__ void scale_VARIANT(const float* source, float* target) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    target[i] = source[i] * 1.5f;
}
"""

ELEMENTS = 256 * 1024 * 1024
LAUNCHES = 6


def build(variant: str) -> Callable[[], object]:
    """Return one step of six kernels that read and write 1 GB each."""
    scale = cupy.RawKernel(SOURCE.replace("VARIANT", variant), f"scale_{variant}")
    if variant == "changed":
        scale.preferred_shared_memory_carveout = 50
    source = cupy.ones(ELEMENTS, dtype=cupy.float32)
    target = cupy.empty_like(source)

    def step() -> object:
        for _ in range(LAUNCHES):
            scale((ELEMENTS // 256,), (256,), (source, target))
        return target[:1024]

    return step
