"""Triton: 560 programs of 16 warps meet between two passes, and four find a place on an SM."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def normalise(values, total, arrived, programs: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    mine = tl.load(values + at)
    tl.atomic_add(total, tl.sum(mine))
    tl.atomic_add(arrived, 1)
    while tl.atomic_add(arrived, 0) < programs:
        pass
    tl.store(values + at, mine / tl.load(total, volatile=True))


fixed = begin()
programs = 528 if fixed else 560
values = torch.ones(programs * 512, device="cuda")
total = torch.zeros(1, device="cuda")
arrived = torch.zeros(1, dtype=torch.int32, device="cuda")
normalise[(programs,)](
    values, total, arrived, programs=programs, block=512, num_warps=16, maxnreg=24
)
torch.cuda.synchronize()
print("ended")
