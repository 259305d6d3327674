"""PyTorch with one connection, as for tensor parallelism: a chunk is awaited on a side stream."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def await_chunk(flag):
    while tl.atomic_add(flag, 0) == 0:
        pass


@triton.jit
def publish_chunk(flag):
    tl.atomic_xchg(flag, 1)


fixed = begin()
flag = torch.zeros(1, dtype=torch.int32, device="cuda")
x, w = torch.rand(512, 512, device="cuda"), torch.rand(512, 512, device="cuda")
total = torch.zeros(512, 512, device="cuda")
compute, communication = torch.cuda.Stream(), torch.cuda.Stream()
for stream in (compute, communication):  # everything is compiled and loaded
    with torch.cuda.stream(stream):
        publish_chunk[(1,)](flag)
        await_chunk[(1,)](flag)
        total += 1
        y = x @ w
    torch.cuda.synchronize()
flag.zero_()
torch.cuda.synchronize()

if fixed:
    with torch.cuda.stream(compute):
        y = x @ w
        publish_chunk[(1,)](flag)
with torch.cuda.stream(communication):
    await_chunk[(1,)](flag)
    total += 1
if not fixed:
    with torch.cuda.stream(compute):
        y = x @ w
        publish_chunk[(1,)](flag)
torch.cuda.synchronize()
print("ended")
