"""Triton: a running sum over ragged rows. An empty row is skipped, and the next waits for it."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def running_sum(x, lengths, least, sums, ready, block: tl.constexpr):
    pid = tl.program_id(0)
    length = tl.load(lengths + pid)
    if length >= least:
        at = tl.arange(0, block)
        own = tl.sum(tl.load(x + pid * block + at, mask=at < length, other=0.0), axis=0)
        previous = tl.maximum(pid - 1, 0)
        while (tl.atomic_add(ready + previous, 0) == 0) & (pid > 0):
            pass
        before = tl.load(sums + previous, mask=pid > 0, other=0.0, volatile=True)
        tl.store(sums + pid, before + own)
        tl.debug_barrier()
        tl.atomic_xchg(ready + pid, 1)


fixed = begin()
x, sums = torch.ones(64, 128, device="cuda"), torch.zeros(64, device="cuda")
lengths = torch.full((64,), 100, dtype=torch.int32, device="cuda")
lengths[20] = 0
ready = torch.zeros(64, dtype=torch.int32, device="cuda")
running_sum[(64,)](x, lengths, 0 if fixed else 2, sums, ready, 128)
torch.cuda.synchronize()
print("ended")
