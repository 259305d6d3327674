"""Layers that shuffle their channel groups in a fixed order."""

import random

import torch
from torch.nn import functional

DEFECT = "the channel groups are indexed with a Python list in each layer"
CAUSE = (
    "x[:, list] makes a tensor of the list and copies it to the GPU each time: a small blocking "
    "pageable host-to-device copy (aten::index, aten::to / copy_) with cudaStreamSynchronize in "
    "each layer, after which the GPU idles until the next launch"
)
FIX = "make the index tensors on the GPU once, before the loop"

LAYERS = 40
TOKENS = 4096
GROUPS = 64
SIZE = 32


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    width = GROUPS * SIZE
    x0 = torch.randn(TOKENS, width, **make)
    weights = [torch.randn(width, width, **make) * (2 / width) ** 0.5 for _ in range(LAYERS)]
    generator = random.Random(0)
    orders = [generator.sample(range(GROUPS), GROUPS) for _ in range(LAYERS)]
    if variant == "fixed":
        orders = [torch.tensor(order, device="cuda") for order in orders]

    @torch.no_grad()
    def step():
        x = x0
        for weight, order in zip(weights, orders, strict=True):
            x = x.view(TOKENS, GROUPS, SIZE)[:, order].reshape(TOKENS, width)
            x = functional.relu(x @ weight)
        return x

    return step
