"""Two independent attention branches on large batches."""

import torch
from torch.nn import functional

SUSPECT = "run the second branch on a stream of its own"

BATCH = 256
LENGTH = 1024
HEADS = 16
SIZE = 128


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    queries = [torch.randn(BATCH, HEADS, LENGTH, SIZE, **make) for _ in range(2)]
    key = torch.randn(BATCH, HEADS, LENGTH, SIZE, **make)
    value = torch.randn(BATCH, HEADS, LENGTH, SIZE, **make)
    side = torch.cuda.Stream()

    def branch(query):
        x = functional.scaled_dot_product_attention(query, key, value)
        return functional.scaled_dot_product_attention(x, key, value)

    @torch.no_grad()
    def step():
        if variant == "given":
            branch(queries[0])
            return branch(queries[1])
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            branch(queries[0])
        result = branch(queries[1])
        main.wait_stream(side)
        return result

    return step
