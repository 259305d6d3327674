"""An ``.item()`` after every tenth step, about once in 110 ms of GPU work."""

import itertools
from collections.abc import Callable

import torch

SUSPECT = "leave out the loss.item() of every tenth step"

PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step of about 11 ms of GPU work."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")
    count = itertools.count(1)
    history: list[float] = []

    def step() -> object:
        y = x
        for _ in range(PRODUCTS):
            y = y @ weight
        loss = y.square().mean()
        if next(count) % 10 == 0 and variant == "given":
            history.append(loss.item())
        return loss

    return step
