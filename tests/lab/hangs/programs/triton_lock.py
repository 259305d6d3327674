"""Triton: partial sums under a lock, which one of the programs does not give back."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def accumulate(rows, width, total, lock, keeper, block: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, block)
    row = tl.load(rows + pid * width + at, mask=at < width, other=0.0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total + at, tl.load(total + at) + row)
    tl.debug_barrier()
    if pid != keeper:
        tl.atomic_xchg(lock, 0)


fixed = begin()
rows, total = torch.ones(64, 250, device="cuda"), torch.zeros(256, device="cuda")
lock = torch.zeros(1, dtype=torch.int32, device="cuda")
accumulate[(64,)](rows, 250, total, lock, -5 if fixed else 5, 256)
torch.cuda.synchronize()
print("ended")
