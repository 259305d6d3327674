"""A mixture of experts: each has a stream and its share of the tokens, between two joins."""

import torch

CHANGES = {"largest_last": "the expert with most tokens is issued last"}
TOKENS = (4096, 1024, 512, 256)
WIDTH, HIDDEN = 1024, 4096


def build(change=None):
    main = torch.cuda.Stream()
    streams = [torch.cuda.Stream() for _ in TOKENS]
    order = list(range(len(TOKENS)))
    if change == "largest_last":
        order.reverse()
    half = {"device": "cuda", "dtype": torch.float16}
    inputs = [torch.randn(n, WIDTH, **half) for n in TOKENS]
    hidden = [torch.empty(n, HIDDEN, **half) for n in TOKENS]
    outputs = torch.empty(sum(TOKENS), WIDTH, **half)
    up = [torch.randn(WIDTH, HIDDEN, **half) for _ in TOKENS]
    down = [torch.randn(HIDDEN, WIDTH, **half) for _ in TOKENS]
    parts = outputs.split(TOKENS)
    total = torch.empty(sum(TOKENS), device="cuda", dtype=torch.float16)

    def body():
        for _ in range(6):
            for k in order:
                streams[k].wait_stream(main)
                with torch.cuda.stream(streams[k]):
                    torch.mm(inputs[k], up[k], out=hidden[k])
                    hidden[k].relu_()
                    torch.mm(hidden[k], down[k], out=parts[k])
            for stream in streams:
                main.wait_stream(stream)
            with torch.cuda.stream(main):
                torch.sum(outputs, 1, out=total)

    return body
