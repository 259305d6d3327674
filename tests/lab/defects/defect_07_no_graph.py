"""A deep and narrow network: 180 tiny kernels that the host launches one by one."""

from collections.abc import Callable

import torch
from torch.nn import functional

DEFECT = "180 tiny kernels are launched one by one; the host is slower than the GPU"
CAUSE = "launch-bound: cudaLaunchKernel for many tiny kernels (aten::linear, layer_norm, relu)"
FIX = "capture the forward pass in a CUDA graph and replay it"

LAYERS = 60
WIDTH = 256


def build(variant: str) -> Callable[[], object]:
    """Return one forward pass, launched kernel by kernel or as one graph."""
    x = torch.randn(64, WIDTH, device="cuda")
    weights = [torch.randn(WIDTH, WIDTH, device="cuda") / 16 for _ in range(LAYERS)]
    biases = [torch.zeros(WIDTH, device="cuda") for _ in range(LAYERS)]

    def forward() -> torch.Tensor:
        y = x
        for weight, bias in zip(weights, biases, strict=True):
            y = functional.relu(functional.layer_norm(functional.linear(y, weight, bias), (WIDTH,)))
        return y

    if variant == "defect":
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
