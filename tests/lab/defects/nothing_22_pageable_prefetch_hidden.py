"""Inference of large MLP blocks whose next batch is copied while the present one is computed."""

import torch
from torch.nn import functional

SUSPECT = "pinned memory for the batches, which are copied from pageable memory"

TOKENS = 8192
WIDTH = 4096
HIDDEN = 16384
LAYERS = 4
FEATURES = 512


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    host = [torch.randn(TOKENS, FEATURES).to(torch.bfloat16) for _ in range(2)]
    if variant == "changed":
        host = [batch.pin_memory() for batch in host]
    embed = torch.randn(FEATURES, WIDTH, **make) * FEATURES**-0.5
    up = [torch.randn(WIDTH, HIDDEN, **make) * WIDTH**-0.5 for _ in range(LAYERS)]
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
        free[slot].record(main)
        for a, b in zip(up, down, strict=True):
            x = functional.gelu(x @ a) @ b
        other = 1 - slot
        with torch.cuda.stream(copier):
            copier.wait_event(free[other])
            slots[other].copy_(host[other], non_blocking=True)
            ready[other].record(copier)
        return x

    return step
