"""A chain of large kernels that keeps the GPU busy without a CUDA graph."""

from collections.abc import Callable

import torch

SUSPECT = "capture the chain in a CUDA graph and replay it"

PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step of about 11 ms of GPU work, launched singly or as a graph."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")

    def forward() -> torch.Tensor:
        y = x
        for _ in range(PRODUCTS):
            y = torch.relu(y @ weight)
        return y

    if variant == "given":
        return forward

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            forward()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = forward()

    def step() -> object:
        graph.replay()
        return output

    return step
