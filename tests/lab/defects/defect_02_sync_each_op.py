"""A chain of 60 short matrix products with a device synchronisation after each one."""

from collections.abc import Callable

import torch

DEFECT = "torch.cuda.synchronize() after every short operation leaves the GPU idle between them"
CAUSE = "cudaDeviceSynchronize called by torch.cuda.synchronize after every kernel"
FIX = "leave the synchronisations out; the stream keeps the order"

PRODUCTS = 60


def build(variant: str) -> Callable[[], object]:
    """Return one chain of matrix products."""
    weight = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16) / 45
    x = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    buffers = [torch.empty_like(x), torch.empty_like(x)]

    def step() -> object:
        source = x
        for i in range(PRODUCTS):
            torch.mm(source, weight, out=buffers[i % 2])
            source = buffers[i % 2]
            if variant == "defect":
                torch.cuda.synchronize()
        return source

    return step
