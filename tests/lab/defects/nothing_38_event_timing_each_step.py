"""Batched matrix products whose steps are timed with CUDA events, read when they are done."""

import torch

SUSPECT = "leave out the CUDA events with which each step is timed"

BATCH = 64
SIDE = 2048
LAYERS = 7


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(BATCH, SIDE, SIDE, **make)
    weights = [torch.randn(BATCH, SIDE, SIDE, **make) * SIDE**-0.5 for _ in range(LAYERS)]
    pending = []
    step_ms = [0.0]

    @torch.no_grad()
    def step():
        if variant == "given":
            begin = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            begin.record()
        x = x0
        for weight in weights:
            x = torch.bmm(x, weight)
        if variant == "given":
            end.record()
            pending.append((begin, end))
            while pending and pending[0][1].query():
                first, last = pending.pop(0)
                step_ms[0] = first.elapsed_time(last)
        return x

    return step
