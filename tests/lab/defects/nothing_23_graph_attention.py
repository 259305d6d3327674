"""Attention over a long sequence, four layers of it."""

import torch
from torch.nn import functional

SUSPECT = "capture the four attention calls in a CUDA graph"

LENGTH = 16384
HEADS = 16
SIZE = 128
LAYERS = 4


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    query = torch.randn(1, HEADS, LENGTH, SIZE, **make)
    keys = [torch.randn(1, HEADS, LENGTH, SIZE, **make) for _ in range(LAYERS)]
    values = [torch.randn(1, HEADS, LENGTH, SIZE, **make) for _ in range(LAYERS)]

    @torch.no_grad()
    def run():
        x = query
        for key, value in zip(keys, values, strict=True):
            x = functional.scaled_dot_product_attention(x, key, value)
        return x

    if variant == "given":
        return run

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()

    def step():
        graph.replay()
        return result

    return step
