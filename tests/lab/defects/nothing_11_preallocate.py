"""Results that are allocated in every step, from PyTorch's cache of GPU memory."""

from collections.abc import Callable

import torch

SUSPECT = "allocate the results once, outside the loop"

PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step of about 11 ms of GPU work."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")
    buffers = [torch.empty_like(x), torch.empty_like(x)]

    def step_given() -> object:
        y = x
        for _ in range(PRODUCTS):
            y = torch.mm(y, weight)
        return y

    def step_changed() -> object:
        y = x
        for i in range(PRODUCTS):
            y = torch.mm(y, weight, out=buffers[i % 2])
        return y

    return {"given": step_given, "changed": step_changed}[variant]
