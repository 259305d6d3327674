"""Triton: programs add to a sum under a lock; a program without values leaves and keeps it."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def add_under_lock(values, counts, lock, total, block: tl.constexpr):
    program = tl.program_id(0)
    at = tl.arange(0, block)
    count = tl.load(counts + program)
    mine = tl.load(values + program * block + at, mask=at < count, other=0.0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if count > 0:
        tl.atomic_add(total, tl.sum(mine))
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)


fixed = begin()
counts = torch.full((96,), 256, dtype=torch.int32, device="cuda")
if not fixed:
    counts[::8] = 0
values = torch.ones(96 * 256, device="cuda")
lock = torch.zeros(1, dtype=torch.int32, device="cuda")
total = torch.zeros(1, device="cuda")
add_under_lock[(96,)](values, counts, lock, total, block=256)
torch.cuda.synchronize()
print("ended")
