"""Products with a long inner dimension, which libraries split and add up, beside reductions."""

import torch

CHANGES = {"reductions_first": "the reductions are issued before the products"}


def build(change=None):
    streams = [torch.cuda.Stream() for _ in range(3)]
    a = torch.randn(192, 65536, device="cuda")
    b = torch.randn(65536, 192, device="cuda")
    x = torch.randn(65536, 2048, device="cuda")
    out = torch.empty(192, 192, device="cuda")

    def product():
        with torch.cuda.stream(streams[0]):
            torch.mm(a, b, out=out)

    def reductions():
        with torch.cuda.stream(streams[1]):
            torch.sum(x, 1)
        with torch.cuda.stream(streams[2]):
            torch.logsumexp(x[:16384], 1)

    steps = [product, reductions]
    if change == "reductions_first":
        steps.reverse()

    def body():
        for _ in range(12):
            for step in steps:
                step()

    return body
