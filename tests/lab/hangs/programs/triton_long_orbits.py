"""Triton: each program follows its orbits for millions of steps, in a dozen waves of a second."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def orbits(points, steps, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    x = tl.load(points + at)
    for _ in range(steps):
        x = 3.7 * x * (1.0 - x)
    tl.store(points + at, x)


begin()
points = torch.rand(26_400 * 256, device="cuda")
orbits[(26_400,)](points, 20_000_000, block=256)
torch.cuda.synchronize()
print("ended")
