"""Attention over long causal sequences and the projections around it."""

import gc

import torch
from torch.nn import functional

SUSPECT = "switch Python's garbage collector off during the steps"

BATCH = 8
LENGTH = 4096
WIDTH = 2048
HEADS = 16
LAYERS = 5


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    tokens = torch.randn(BATCH, LENGTH, WIDTH, **make)
    layers = [
        (
            torch.randn(WIDTH, 3 * WIDTH, **make) * WIDTH**-0.5,
            torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5,
        )
        for _ in range(LAYERS)
    ]

    @torch.no_grad()
    def step():
        if variant == "given":
            gc.enable()
        else:
            gc.disable()
        x = tokens
        for qkv, out in layers:
            heads = (x @ qkv).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
            query, key, value = heads.permute(2, 0, 3, 1, 4).unbind(0)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH) @ out
        return x

    return step
