"""120 small matrix products in a Python loop where one batched product would do."""

from collections.abc import Callable

import torch

DEFECT = "a Python loop over 120 small matrix products instead of one batched product"
CAUSE = "launch-bound: many tiny kernels from aten::matmul / aten::mm in a Python loop"
FIX = "one torch.bmm"

MATRICES = 120


def build(variant: str) -> Callable[[], object]:
    """Return one step: the small products, then five large ones."""
    left = torch.randn(MATRICES, 256, 256, device="cuda", dtype=torch.bfloat16)
    right = torch.randn(MATRICES, 256, 256, device="cuda", dtype=torch.bfloat16) / 16
    weight = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)

    def step() -> object:
        if variant == "defect":
            small = torch.stack([left[i] @ right[i] for i in range(MATRICES)])
        else:
            small = torch.bmm(left, right)
        y = x * small[0, 0, 0]
        for _ in range(5):
            y = y @ weight
        return y

    return step
