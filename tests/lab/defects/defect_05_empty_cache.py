"""Temporary tensors whose memory is given back to the driver in every step."""

from collections.abc import Callable

import torch

DEFECT = "torch.cuda.empty_cache() in every step: all memory is freed and allocated anew"
CAUSE = "cudaFree called by torch.cuda.empty_cache (and the cudaMalloc calls that follow it)"
FIX = "do not call torch.cuda.empty_cache() in the loop"
SEPARATE = True

TEMPORARIES = 8


def build(variant: str) -> Callable[[], object]:
    """Return one step: eight temporaries of 256 MB and their sum's mean."""
    x = torch.rand(64 * 1024 * 1024, device="cuda")

    def step() -> object:
        temporaries = [x * (i + 1) for i in range(TEMPORARIES)]
        result = sum(t[:1024].mean() for t in temporaries)
        del temporaries
        if variant == "defect":
            torch.cuda.empty_cache()
        return result

    return step
