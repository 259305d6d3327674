"""Chunks are copied to the GPU, computed and copied back; the kernels take the most time."""

import torch
from torch.nn import functional

SUSPECT = "a stream of their own for the downloads, which share one with the uploads"

CHUNKS = 8
TOKENS = 2048
WIDTH = 2048
HIDDEN = 16384
LAYERS = 3


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    pinned = {"dtype": torch.bfloat16, "pin_memory": True}
    source = torch.empty(CHUNKS, TOKENS, WIDTH, **pinned)
    source.copy_(torch.randn(CHUNKS, TOKENS, WIDTH, **make))
    target = torch.empty(CHUNKS, TOKENS, WIDTH, **pinned)
    inputs = torch.empty(CHUNKS, TOKENS, WIDTH, **make)
    outputs = torch.empty(CHUNKS, TOKENS, WIDTH, **make)
    up = [torch.randn(WIDTH, HIDDEN, **make) * WIDTH**-0.5 for _ in range(LAYERS)]
    down = [torch.randn(HIDDEN, WIDTH, **make) * HIDDEN**-0.5 for _ in range(LAYERS)]
    uploads = torch.cuda.Stream()
    downloads = uploads if variant == "given" else torch.cuda.Stream()
    torch.cuda.synchronize()

    def upload(chunk):
        with torch.cuda.stream(uploads):
            inputs[chunk].copy_(source[chunk], non_blocking=True)
        return uploads.record_event()

    @torch.no_grad()
    def step():
        main = torch.cuda.current_stream()
        uploads.wait_stream(main)
        arrived = upload(0)
        for chunk in range(CHUNKS):
            main.wait_event(arrived)
            if chunk + 1 < CHUNKS:
                arrived = upload(chunk + 1)
            x = inputs[chunk]
            for a, b in zip(up, down, strict=True):
                x = functional.gelu(x @ a) @ b
            outputs[chunk].copy_(x)
            downloads.wait_event(main.record_event())
            with torch.cuda.stream(downloads):
                target[chunk].copy_(outputs[chunk], non_blocking=True)
        main.wait_stream(downloads)
        return outputs

    return step
