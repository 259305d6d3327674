"""Inference under autocast of a wide MLP that is in bfloat16 anyway."""

import torch
from torch.nn import functional

SUSPECT = "drop the autocast context"

TOKENS = 16384
WIDTH = 4096
LAYERS = 6


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(TOKENS, WIDTH, **make)
    weights = [torch.randn(WIDTH, WIDTH, **make) * (2 / WIDTH) ** 0.5 for _ in range(LAYERS)]
    bias = [torch.randn(WIDTH, **make) for _ in range(LAYERS)]

    @torch.no_grad()
    def step():
        x = x0
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=variant == "given"):
            for weight, shift in zip(weights, bias, strict=True):
                x = functional.relu(functional.linear(x, weight, shift))
        return x

    return step
