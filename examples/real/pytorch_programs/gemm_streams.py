"""Matrix products of four sizes, each in a stream of its own."""

import torch

CHANGES = {"two_streams": "two streams instead of four"}
SIZES = (640, 768, 1024, 1280)


def build(change=None):
    streams = [torch.cuda.Stream() for _ in range(2 if change == "two_streams" else 4)]
    inputs = [torch.randn(n, 4096, device="cuda") for n in SIZES]
    outputs = [torch.empty(n, n, device="cuda") for n in SIZES]

    def body():
        for _ in range(12):
            for k, (a, out) in enumerate(zip(inputs, outputs, strict=True)):
                with torch.cuda.stream(streams[k % len(streams)]):
                    torch.mm(a, a.T, out=out)

    return body
