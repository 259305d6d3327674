"""Inference of a wide MLP."""

import torch

SUSPECT = "apply the activation in place (relu_) instead of into a new tensor"

TOKENS = 16384
WIDTH = 4096
LAYERS = 6


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(TOKENS, WIDTH, **make)
    weights = [torch.randn(WIDTH, WIDTH, **make) * (2 / WIDTH) ** 0.5 for _ in range(LAYERS)]

    @torch.no_grad()
    def step():
        x = x0
        for weight in weights:
            x = x @ weight
            x = torch.relu(x) if variant == "given" else torch.relu_(x)
        return x

    return step
