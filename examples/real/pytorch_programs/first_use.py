"""A kernel used for the first time while others run: CUDA loads it lazily, when all is idle."""

import torch

CHANGES = {"warm": "the kernel has been used before"}
WARM_UPS = 0  # a kernel is first used once


def build(change=None):
    streams = [torch.cuda.Stream() for _ in range(3)]
    inputs = [torch.randn(640, 4096, device="cuda") for _ in streams]
    outputs = [torch.empty(640, 640, device="cuda") for _ in streams]
    x = torch.rand(256, 256, device="cuda")
    y = torch.empty_like(x)

    def products():
        for stream, a, out in zip(streams, inputs, outputs, strict=True):
            with torch.cuda.stream(stream):
                torch.mm(a, a.T, out=out)

    def body():
        for step in range(12):
            products()
            if step == 4:
                with torch.cuda.stream(streams[0]):
                    torch.log1p(x, out=y)

    for _ in range(3):
        products()
    if change == "warm":
        torch.log1p(x, out=y)
    torch.cuda.synchronize()
    return body
