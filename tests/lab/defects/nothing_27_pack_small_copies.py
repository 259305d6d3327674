"""Twelve large layers, each with a small vector that comes from the host in each step."""

import torch

SUSPECT = "copy the twelve small vectors to the GPU as one tensor instead of one by one"

TOKENS = 16384
WIDTH = 4096
LAYERS = 12


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(TOKENS, WIDTH, **make)
    weights = [torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5 for _ in range(LAYERS)]
    packed = (torch.randn(LAYERS, WIDTH) * 0.1).to(torch.bfloat16).pin_memory()
    single = [packed[i].clone().pin_memory() for i in range(LAYERS)]

    @torch.no_grad()
    def step():
        if variant == "given":
            shifts = [vector.to("cuda", non_blocking=True) for vector in single]
        else:
            shifts = packed.to("cuda", non_blocking=True).unbind(0)
        x = x0
        for weight, shift in zip(weights, shifts, strict=True):
            x = torch.addmm(shift, x, weight)
        return x

    return step
