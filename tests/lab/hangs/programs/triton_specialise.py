"""Triton compiles a kernel again for a size that 16 does not divide: when another waits for it."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def await_sum(total, out):
    while tl.atomic_add(total, 0) == 0:
        pass
    tl.store(out, 1)


@triton.jit
def add_up(values, n, total, block: tl.constexpr):
    at = tl.arange(0, block)
    tl.atomic_add(total, tl.sum(tl.load(values + at, mask=at < n, other=0), axis=0))


fixed = begin()
values = torch.ones(64, dtype=torch.int32, device="cuda")
total, out = torch.zeros(1, dtype=torch.int32, device="cuda"), torch.zeros_like(values)
for size in (64, 48, 50) if fixed else (64, 48):
    add_up[(1,)](values, size, total, 64)
await_sum[(1,)](total, out)
total.zero_()
torch.cuda.synchronize()

waiting, adding = torch.cuda.Stream(), torch.cuda.Stream()
with torch.cuda.stream(waiting):
    await_sum[(1,)](total, out)
with torch.cuda.stream(adding):
    add_up[(1,)](values, 50, total, 64)
torch.cuda.synchronize()
print("ended")
