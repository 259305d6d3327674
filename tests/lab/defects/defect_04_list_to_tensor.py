"""Batches held as Python lists and turned into a tensor in every step."""

import itertools
from collections.abc import Callable

import torch

DEFECT = "torch.tensor(list) in every step: the host converts 60,000 Python numbers, the GPU waits"
CAUSE = "host work between launches: torch.tensor built from a Python list (not the small copy)"
FIX = "convert the data to tensors once, before the loop"

NUMBERS = 60_000


def build(variant: str) -> Callable[[], object]:
    """Return one step: bring a batch to the GPU, then five matrix products."""
    weight = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    lists = [[(i * 7 + j) % 1000 / 1000.0 for i in range(NUMBERS)] for j in range(4)]
    tensors = [torch.tensor(numbers, device="cuda") for numbers in lists]
    turn = itertools.cycle(range(4))

    def step() -> object:
        index = next(turn)
        make = variant == "defect"
        batch = torch.tensor(lists[index], device="cuda") if make else tensors[index]
        y = x * batch.mean()
        for _ in range(5):
            y = y @ weight
        return y

    return step
