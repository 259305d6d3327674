"""A fixed-point iteration with a wide network, stopped when nothing changes any more."""

import torch
from torch.nn import functional

SUSPECT = "do not ask after each iteration whether the change is small enough to stop"

TOKENS = 8192
WIDTH = 4096
HIDDEN = 16384
ITERATIONS = 3
TOLERANCE = 1e-6
WATCHED = 256


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(TOKENS, WIDTH, **make)
    up = torch.randn(WIDTH, HIDDEN, **make) * WIDTH**-0.5
    down = torch.randn(HIDDEN, WIDTH, **make) * HIDDEN**-0.5

    @torch.no_grad()
    def step():
        x = x0
        for _ in range(ITERATIONS):
            new = torch.tanh(functional.gelu(x @ up) @ down)
            change = (new[:WATCHED] - x[:WATCHED]).abs().amax()
            x = new
            if variant == "given" and change < TOLERANCE:
                break
        return x

    return step
