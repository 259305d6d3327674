"""GELU written out as eight element-wise operations on large tensors."""

from collections.abc import Callable

import torch
from torch.nn import functional

DEFECT = "an activation as a chain of eight element-wise kernels, each going through all memory"
CAUSE = "unfused chain of memory-bound element-wise kernels (aten::mul, aten::add, aten::tanh)"
FIX = "one fused kernel: functional.gelu(x, approximate='tanh')"

TENSORS = 5


def build(variant: str) -> Callable[[], object]:
    """Return one step: the activation of five tensors of 256 MB."""
    inputs = [torch.randn(64 * 1024 * 1024, device="cuda") for _ in range(TENSORS)]

    def gelu(x: torch.Tensor) -> torch.Tensor:
        if variant == "fixed":
            return functional.gelu(x, approximate="tanh")
        return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    def step() -> object:
        y = inputs[0]
        for x in inputs:
            y = gelu(x)
        return y

    return step
