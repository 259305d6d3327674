"""Triton: longer rows need a kernel of another block size, compiled while a kernel waits for it."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def await_rows(counted, rows: tl.constexpr):
    while tl.atomic_add(counted, 0) < rows:
        pass


@triton.jit
def sum_rows(values, sums, counted, block: tl.constexpr):
    row = tl.program_id(0)
    total = tl.sum(tl.load(values + row * block + tl.arange(0, block)))
    tl.store(sums + row, total)
    tl.atomic_add(counted, 1)


fixed = begin()
values, sums = torch.ones(16 * 2048, device="cuda"), torch.zeros(16, device="cuda")
counted = torch.zeros(1, dtype=torch.int32, device="cuda")
waiting, work = torch.cuda.Stream(), torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(work):
    sum_rows[(16,)](values, sums, counted, block=512)
    if fixed:
        sum_rows[(16,)](values, sums, counted, block=2048)
    await_rows[(1,)](counted, rows=16)
torch.cuda.synchronize()
counted.zero_()
torch.cuda.synchronize()
with torch.cuda.stream(waiting):
    await_rows[(1,)](counted, rows=16)
with torch.cuda.stream(work):
    sum_rows[(16,)](values, sums, counted, block=2048)
torch.cuda.synchronize()
print("ended")
