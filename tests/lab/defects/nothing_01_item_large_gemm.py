"""Four large matrix products and one ``.item()`` at the end of every step."""

from collections.abc import Callable

import torch

SUSPECT = "leave out the loss.item() of every step"

PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step of about 11 ms of GPU work."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")

    def step() -> object:
        y = x
        for _ in range(PRODUCTS):
            y = y @ weight
        loss = y.square().mean()
        return loss.item() if variant == "given" else loss

    return step
