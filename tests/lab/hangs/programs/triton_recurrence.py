"""Triton: a recurrence over very many steps, a few seconds per kernel."""

import time

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def recur(x, steps, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at)
    for _ in range(steps):
        value = value * 0.9999 + 0.001
    tl.store(x + at, value)


begin()
x = torch.rand(132 * 128, device="cuda")
recur[(132,)](x, 1600, 128)
torch.cuda.synchronize()
steps = 40_000_000
began = time.perf_counter()
recur[(132,)](x, steps, 128)
torch.cuda.synchronize()
steps = min(2_000_000_000, int(steps * 2.8 / (time.perf_counter() - began)) // 16 * 16)
for _ in range(3):
    recur[(132,)](x, steps, 128)
torch.cuda.synchronize()
print("ended")
