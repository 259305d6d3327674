"""Sixteen channels' recordings pass through levels that each set their loudness."""

import torch
import triton
import triton.language as tl

DEFECT = "the sum over each of sixteen long rows is left to a single block of the Triton kernel"
CAUSE = (
    "the Triton kernel sum_squares runs with a grid of 16 blocks on 132 multiprocessors, so most "
    "of the GPU is idle though a kernel is running all the time"
)
FIX = "a grid of 16 × 64 blocks, each of which sums up a part of a row"

LEVELS = 6
ROWS = 16
LENGTH = 1 << 22


@triton.jit
def sum_squares(source, target, length: tl.constexpr, parts: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0)
    part = tl.program_id(1)
    first = source + row * length + part * (length // parts)
    total = tl.zeros([block], dtype=tl.float32)
    for begin in range(0, length // parts, block):
        x = tl.load(first + begin + tl.arange(0, block))
        total += x * x
    tl.store(target + row * parts + part, tl.sum(total, axis=0))


def build(variant):
    parts = 1 if variant == "defect" else 64
    x0 = torch.randn(ROWS, LENGTH, device="cuda")
    sums = torch.empty(ROWS, parts, device="cuda")

    @torch.no_grad()
    def step():
        x = x0
        for level in range(LEVELS):
            sum_squares[(ROWS, parts)](x, sums, LENGTH, parts, block=4096, num_warps=8)
            loudness = (sums.sum(1, keepdim=True) / LENGTH).sqrt()
            x = x * ((level + 1) / loudness)
        return x

    return step
