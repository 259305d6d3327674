"""A short pause on the host in every step, hidden behind the queued GPU work."""

import time
from collections.abc import Callable

import torch

SUSPECT = "leave out the host's pause of 0.5 ms per step"

PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step of about 11 ms of GPU work that nobody waits for."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")

    def step() -> object:
        y = x
        for _ in range(PRODUCTS):
            y = y @ weight
        if variant == "given":
            time.sleep(0.0005)
        return y

    return step
