"""Triton: 500 programs add to one histogram under a lock, and do all their work while they hold
it, tens of milliseconds each."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def add_under_lock(lock, histogram, steps, width: tl.constexpr):
    at = tl.arange(0, width)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    bins = tl.load(histogram + at, volatile=True)
    for _ in range(steps):
        bins = bins * 0.99999 + 0.5
    tl.store(histogram + at, bins)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


begin()
lock = torch.zeros(1, dtype=torch.int32, device="cuda")
histogram = torch.zeros(128, device="cuda")
torch.cuda.synchronize()
add_under_lock[(500,)](lock, histogram, 18_000_000, width=128)
torch.cuda.synchronize()
print("ended")
