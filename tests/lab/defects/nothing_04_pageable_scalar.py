"""One number that is copied from pageable host memory in every step."""

from collections.abc import Callable

import torch

SUSPECT = "copy the four bytes from pinned memory with non_blocking=True"

PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step: copy a scale, then about 11 ms of GPU work."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")
    host = torch.full((1,), 0.5)
    if variant == "changed":
        host = host.pin_memory()

    def step() -> object:
        y = x * host.to("cuda", non_blocking=variant == "changed")
        for _ in range(PRODUCTS):
            y = y @ weight
        return y

    return step
