"""Inference of a residual convolution network whose layers are timed with CUDA events."""

import torch
from torch.nn import functional

DEFECT = "each layer's end event is synchronised before the next layer is launched"
CAUSE = (
    "cudaEventSynchronize after each layer (torch.cuda.Event.synchronize, then elapsed_time): the "
    "host waits 40 times a step and nothing is queued for the GPU meanwhile"
)
FIX = "record the events in the loop, synchronise once after it and read all the times then"

LAYERS = 40


def build(variant):
    last = torch.channels_last
    x0 = torch.randn(96, 128, 28, 28, device="cuda", dtype=torch.bfloat16).to(memory_format=last)
    weights = [
        (torch.randn(128, 128, 3, 3, device="cuda") * (128 * 9) ** -0.5)
        .to(torch.bfloat16)
        .to(memory_format=last)
        for _ in range(LAYERS)
    ]
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(LAYERS)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(LAYERS)]
    layer_ms = [0.0] * LAYERS

    @torch.no_grad()
    def step():
        x = x0
        for i, weight in enumerate(weights):
            starts[i].record()
            y = functional.conv2d(x, weight, padding=1).relu_()
            x = torch.add(x, y, alpha=0.1)
            ends[i].record()
            if variant == "defect":
                ends[i].synchronize()
                layer_ms[i] += starts[i].elapsed_time(ends[i])
        if variant == "fixed":
            ends[-1].synchronize()
            for i in range(LAYERS):
                layer_ms[i] += starts[i].elapsed_time(ends[i])
        return x

    return step
