"""A Triton kernel scales several large tensors."""

import torch
import triton
import triton.language as tl

SUSPECT = "a grid of twice as many blocks, each of half the size, for the Triton kernel"

COUNT = 1 << 27
TENSORS = 6


@triton.jit
def scale(source, target, factor, block: tl.constexpr):
    place = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(target + place, tl.load(source + place) * factor)


def build(variant):
    sources = [torch.randn(COUNT, device="cuda") for _ in range(TENSORS)]
    targets = [torch.empty_like(source) for source in sources]
    block, warps = (2048, 8) if variant == "given" else (1024, 4)
    grid = (COUNT // block,)

    def step():
        for source, target in zip(sources, targets, strict=True):
            scale[grid](source, target, 0.5, block=block, num_warps=warps)
        return targets[-1]

    return step
