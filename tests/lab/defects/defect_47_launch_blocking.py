"""Inference of a deep residual MLP."""

import os

import torch
from torch.nn import functional

DEFECT = "CUDA_LAUNCH_BLOCKING=1 was left on after debugging"
CAUSE = (
    "each cudaLaunchKernel returns only when its kernel has ended (CUDA_LAUNCH_BLOCKING=1), so no "
    "kernel is queued while another runs and the GPU idles between all kernels"
)
FIX = "do not set CUDA_LAUNCH_BLOCKING"
SEPARATE = True

BLOCKS = 40
TOKENS = 8192
WIDTH = 1024


def build(variant):
    # The driver reads the variable when CUDA is initialised, which happens below.
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1" if variant == "defect" else "0"
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(TOKENS, WIDTH, **make)
    weights = [torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5 for _ in range(BLOCKS)]

    @torch.no_grad()
    def step():
        x = x0
        for weight in weights:
            x = x + functional.gelu(functional.layer_norm(x, (WIDTH,)) @ weight)
        return x

    return step
