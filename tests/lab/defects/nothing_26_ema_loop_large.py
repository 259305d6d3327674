"""Large matrix products and a moving average of their six large weights."""

import torch
from torch.nn import functional

SUSPECT = "one torch._foreach_lerp_ for the moving averages instead of a loop over the weights"

TOKENS = 16384
WIDTH = 4096
LAYERS = 6


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(TOKENS, WIDTH, **make)
    weights = [torch.randn(WIDTH, WIDTH, **make) * (2 / WIDTH) ** 0.5 for _ in range(LAYERS)]
    averages = [torch.zeros_like(weight) for weight in weights]

    @torch.no_grad()
    def step():
        x = x0
        for _ in range(2):
            for weight in weights:
                x = functional.relu(x @ weight)
        if variant == "given":
            for average, weight in zip(averages, weights, strict=True):
                average.lerp_(weight, 0.01)
        else:
            torch._foreach_lerp_(averages, weights, 0.01)
        return x

    return step
