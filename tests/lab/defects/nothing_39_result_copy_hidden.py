"""Inference whose last result goes to the host while the next batch is computed."""

import torch
from torch.nn import functional

SUSPECT = "a pinned buffer and non_blocking=True for the result, which goes to pageable memory"

TOKENS = 8192
WIDTH = 4096
HIDDEN = 16384
LAYERS = 4
FEATURES = 256


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(TOKENS, WIDTH, **make)
    up = [torch.randn(WIDTH, HIDDEN, **make) * WIDTH**-0.5 for _ in range(LAYERS)]
    down = [torch.randn(HIDDEN, WIDTH, **make) * HIDDEN**-0.5 for _ in range(LAYERS)]
    head = torch.randn(WIDTH, FEATURES, **make) * WIDTH**-0.5
    results = [torch.zeros(TOKENS, FEATURES, **make) for _ in range(2)]
    host = torch.empty(TOKENS, FEATURES, dtype=torch.bfloat16, pin_memory=variant == "changed")
    copier = torch.cuda.Stream()
    done = [torch.cuda.Event(), torch.cuda.Event()]
    copied = [torch.cuda.Event(), torch.cuda.Event()]
    for event in (*done, *copied):
        event.record()
    count = [0]

    @torch.no_grad()
    def step():
        slot = count[0] % 2
        count[0] += 1
        main = torch.cuda.current_stream()
        x = x0
        for a, b in zip(up, down, strict=True):
            x = functional.gelu(x @ a) @ b
        main.wait_event(copied[slot])
        torch.mm(x, head, out=results[slot])
        done[slot].record(main)
        other = 1 - slot
        with torch.cuda.stream(copier):
            copier.wait_event(done[other])
            host.copy_(results[other], non_blocking=variant == "changed")
            copied[other].record(copier)
        return results[slot]

    return step
