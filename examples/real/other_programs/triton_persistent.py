"""A persistent Triton kernel on some of the SMs beside many products of PyTorch on the others."""

import torch
import triton
import triton.language as tl

CHANGES = {"products_first": "the products are issued before the persistent kernel"}
WORKERS = 48


@triton.jit
def persistent(x, y, tiles, rounds, BLOCK: tl.constexpr):  # noqa: N803
    """Each program takes every WORKERS-th tile and iterates a map on it."""
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        at = tile * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + at)
        for _ in range(rounds):
            value = value * 0.999 + 0.001
        tl.store(y + at, value)


def build(change=None):
    own, others = torch.cuda.Stream(), torch.cuda.Stream()
    tiles, block = WORKERS * 64, 1024
    x = torch.randn(tiles * block, device="cuda")
    y = torch.empty_like(x)
    a = torch.randn(768, 4096, device="cuda")
    out = torch.empty(768, 768, device="cuda")

    def worker():
        with torch.cuda.stream(own):
            persistent[(WORKERS,)](x, y, tiles, 16_000, BLOCK=block, num_warps=8)

    def products():
        with torch.cuda.stream(others):
            for _ in range(20):
                torch.mm(a, a.T, out=out)

    steps = (products, worker) if change == "products_first" else (worker, products)

    def body():
        for step in steps:
            step()

    return body
