"""Triton loads a kernel at its first launch: here another kernel waits for it."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def consume(values, ready, out, block: tl.constexpr):
    while tl.atomic_add(ready, 0) == 0:
        pass
    at = tl.arange(0, block)
    tl.store(out + at, tl.load(values + at) + 1)


@triton.jit
def produce(values, ready, block: tl.constexpr):
    at = tl.arange(0, block)
    tl.store(values + at, at.to(tl.float32))
    tl.atomic_add(ready, 1)


fixed = begin()
values, out = torch.zeros(256, device="cuda"), torch.zeros(256, device="cuda")
ready = torch.ones(1, dtype=torch.int32, device="cuda")
consume[(1,)](values, ready, out, 256)
if fixed:
    produce[(1,)](values, ready, 256)
ready.zero_()
torch.cuda.synchronize()
consuming, producing = torch.cuda.Stream(), torch.cuda.Stream()
with torch.cuda.stream(consuming):
    consume[(1,)](values, ready, out, 256)
with torch.cuda.stream(producing):
    produce[(1,)](values, ready, 256)
torch.cuda.synchronize()
print("ended")
