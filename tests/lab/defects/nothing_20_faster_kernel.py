"""A step that waits 5 ms for its data, so that faster kernels gain nothing."""

import time
from collections.abc import Callable

import torch

SUSPECT = "bfloat16 instead of float32 matrix products (kernels ten times as fast)"

PRODUCTS = 3


def build(variant: str) -> Callable[[], object]:
    """Return one step: a wait of 5 ms on the host, then about 1 ms of GPU work or less."""
    weight = torch.randn(2048, 2048, device="cuda") / 45
    x = torch.randn(2048, 2048, device="cuda")
    if variant == "changed":
        weight, x = weight.bfloat16(), x.bfloat16()

    def step() -> object:
        time.sleep(0.005)
        y = x
        for _ in range(PRODUCTS):
            y = y @ weight
        return y

    return step
