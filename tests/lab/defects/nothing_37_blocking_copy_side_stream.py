"""Inference whose next pinned batch is copied on a side stream while the GPU computes."""

import torch
from torch.nn import functional

SUSPECT = "non_blocking=True for the copy on the side stream, for which the host waits"

TOKENS = 32768
WIDTH = 2048
HIDDEN = 8192
LAYERS = 4


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    host = [torch.randn(TOKENS, 256).to(torch.bfloat16).pin_memory() for _ in range(2)]
    embed = torch.randn(256, WIDTH, **make) * 256**-0.5
    up = [torch.randn(WIDTH, HIDDEN, **make) * (2 / WIDTH) ** 0.5 for _ in range(LAYERS)]
    down = [torch.randn(HIDDEN, WIDTH, **make) * HIDDEN**-0.5 for _ in range(LAYERS)]
    slots = [batch.to("cuda") for batch in host]
    copier = torch.cuda.Stream()
    ready = [torch.cuda.Event(), torch.cuda.Event()]
    free = [torch.cuda.Event(), torch.cuda.Event()]
    for event in (*ready, *free):
        event.record()
    count = [0]

    @torch.no_grad()
    def step():
        slot = count[0] % 2
        count[0] += 1
        main = torch.cuda.current_stream()
        main.wait_event(ready[slot])
        x = slots[slot] @ embed
        for a, b in zip(up, down, strict=True):
            x = functional.relu(x @ a) @ b
        free[slot].record(main)
        other = 1 - slot
        with torch.cuda.stream(copier):
            copier.wait_event(free[other])
            slots[other].copy_(host[other], non_blocking=variant == "changed")
            ready[other].record(copier)
        return x

    return step
