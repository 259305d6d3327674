"""Sixteen numbers that are fetched with ``.cpu()`` after every large step."""

from collections.abc import Callable

import torch

SUSPECT = "copy the sixteen numbers into pinned memory with non_blocking=True"

PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step: about 11 ms of GPU work and a copy of 64 bytes to the host."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")
    pinned = torch.empty(16, pin_memory=True)

    def step() -> object:
        y = x
        for _ in range(PRODUCTS):
            y = y @ weight
        metrics = y[:16].abs().mean(dim=1)
        if variant == "given":
            return metrics.cpu()
        return pinned.copy_(metrics, non_blocking=True)

    return step
