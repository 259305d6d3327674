"""Inference over batches of stored features that are prefetched on a copy stream."""

import torch
from torch.nn import functional

DEFECT = "the batches that are copied with non_blocking=True lie in pageable memory"
CAUSE = (
    "host-to-device cudaMemcpyAsync from pageable memory: it blocks the host and is staged "
    "slowly, so the copy on the side stream does not overlap with the compute stream's kernels"
)
FIX = "put the batches into pinned memory (pin_memory())"

TOKENS = 24576
WIDTH = 1024
HIDDEN = 4096
LAYERS = 4


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    host = [torch.randn(TOKENS, WIDTH).to(torch.bfloat16) for _ in range(2)]
    if variant == "fixed":
        host = [batch.pin_memory() for batch in host]
    up = [torch.randn(WIDTH, HIDDEN, **make) * WIDTH**-0.5 for _ in range(LAYERS)]
    down = [torch.randn(HIDDEN, WIDTH, **make) * HIDDEN**-0.5 for _ in range(LAYERS)]
    slots = [torch.empty(TOKENS, WIDTH, **make) for _ in range(2)]
    copier = torch.cuda.Stream()
    ready = [torch.cuda.Event(), torch.cuda.Event()]
    free = [torch.cuda.Event(), torch.cuda.Event()]
    for event in free:
        event.record()
    count = [0]

    def prefetch(slot):
        with torch.cuda.stream(copier):
            copier.wait_event(free[slot])
            slots[slot].copy_(host[slot], non_blocking=True)
            ready[slot].record(copier)

    prefetch(0)

    @torch.no_grad()
    def step():
        slot = count[0] % 2
        count[0] += 1
        prefetch(1 - slot)
        main = torch.cuda.current_stream()
        main.wait_event(ready[slot])
        x = slots[slot]
        for a, b in zip(up, down, strict=True):
            x = functional.gelu(x @ a) @ b
        free[slot].record(main)
        return x

    return step
