"""Three matrix products of about 5 ms each with a device synchronisation after each one."""

from collections.abc import Callable

import torch

SUSPECT = "leave out torch.cuda.synchronize() between the matrix products"

PRODUCTS = 3


def build(variant: str) -> Callable[[], object]:
    """Return one step of about 16 ms of GPU work."""
    weight = torch.randn(5120, 5120, device="cuda") / 72
    x = torch.randn(5120, 5120, device="cuda")

    def step() -> object:
        y = x
        for _ in range(PRODUCTS):
            y = y @ weight
            if variant == "given":
                torch.cuda.synchronize()
        return y

    return step
