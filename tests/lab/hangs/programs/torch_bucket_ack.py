"""PyTorch: the backward pass holds a bucket until it is acknowledged, scales it, and goes on; the
acknowledgement comes in a stream of its own. One connection is set, as for tensor parallelism."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def hold_bucket(acknowledged, bucket, width: tl.constexpr):
    while tl.atomic_add(acknowledged, 0) == 0:
        pass
    at = bucket + tl.arange(0, width)
    tl.store(at, tl.load(at) + 1.0)


@triton.jit
def acknowledge(acknowledged):
    tl.atomic_xchg(acknowledged, 1)


fixed = begin()
acknowledged = torch.zeros(1, dtype=torch.int32, device="cuda")
bucket, norm = torch.ones(512, device="cuda"), torch.ones(512, device="cuda")
torch.cuda.synchronize()
backward, control = torch.cuda.Stream(), torch.cuda.Stream()


def give():
    with torch.cuda.stream(control):
        acknowledge[(1,)](acknowledged)


def step():
    with torch.cuda.stream(backward):
        hold_bucket[(1,)](acknowledged, bucket, width=512)
        bucket.mul_(0.5)
        norm.add_(bucket)


give()
torch.cuda.synchronize()
step()  # everything is compiled and loaded
torch.cuda.synchronize()
acknowledged.zero_()
torch.cuda.synchronize()
for each in (give, step) if fixed else (step, give):
    each()
torch.cuda.synchronize()
print("ended")
