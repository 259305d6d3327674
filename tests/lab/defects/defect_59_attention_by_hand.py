"""Two attention layers of a long-context encoder."""

import torch
from torch.nn import functional

DEFECT = "attention is written out: scores, softmax and weighted sum as separate operations"
CAUSE = (
    "the matrix of all scores is written to memory and read again by memory-bound kernels "
    "(aten::mul, aten::softmax) between the two matrix products (aten::matmul / bmm)"
)
FIX = "functional.scaled_dot_product_attention, one fused kernel"

LAYERS = 2
BATCH = 4
HEADS = 16
LENGTH = 4096
SIZE = 128


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    query = torch.randn(BATCH, HEADS, LENGTH, SIZE, **make)
    keys = [torch.randn(BATCH, HEADS, LENGTH, SIZE, **make) for _ in range(LAYERS)]
    values = [torch.randn(BATCH, HEADS, LENGTH, SIZE, **make) for _ in range(LAYERS)]

    @torch.no_grad()
    def step():
        x = query
        for key, value in zip(keys, values, strict=True):
            if variant == "defect":
                scores = (x @ key.mT) * SIZE**-0.5
                x = x + torch.softmax(scores, -1) @ value
            else:
                x = x + functional.scaled_dot_product_attention(x, key, value)
        return x

    return step
