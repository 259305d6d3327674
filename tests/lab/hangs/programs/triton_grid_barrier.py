"""Triton: a softmax over a whole vector, in which all programs of one warp wait for the maximum."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def softmax_terms(x, out, largest, arrived, programs, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    row = tl.load(x + at)
    tl.atomic_max(largest, tl.max(row, axis=0))
    tl.atomic_add(arrived, 1)
    while tl.atomic_add(arrived, 0) < programs:
        pass
    tl.store(out + at, tl.exp(row - tl.load(largest)))


fixed = begin()
programs = 4000 if fixed else 4300
x = torch.rand(4300 * 32, device="cuda")
out = torch.empty_like(x)
largest = torch.zeros(1, device="cuda")
arrived = torch.zeros(1, dtype=torch.int32, device="cuda")
softmax_terms[(programs,)](x, out, largest, arrived, programs, 32, num_warps=1)
torch.cuda.synchronize()
print("ended")
