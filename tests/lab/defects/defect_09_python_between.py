"""A long pure-Python computation on the main thread before the launches of each step."""

import itertools
from collections.abc import Callable

import torch

DEFECT = "each step runs about 5 ms of pure Python before it launches 1 ms of GPU work"
CAUSE = "host work (Python on the main thread) between launches; the GPU is idle, no CUDA call"
FIX = "compute the values before the loop and look them up"

ITERATIONS = 60_000


def sample_weight(index: int) -> float:
    """Return a number between 0 and 1 after a long pure-Python loop."""
    state = index + 1
    for _ in range(ITERATIONS):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    return state / 0x7FFFFFFF


def build(variant: str) -> Callable[[], object]:
    """Return one step: a weight from Python, then five matrix products."""
    weight = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    table = [sample_weight(i) for i in range(8)]
    turn = itertools.cycle(range(8))

    def step() -> object:
        index = next(turn)
        scale = sample_weight(index) if variant == "defect" else table[index]
        y = x * scale
        for _ in range(5):
            y = y @ weight
        return y

    return step
