"""PyTorch and Triton: a collective's wait in its stream, and the launch that ends it, one queue."""

import os

os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"  # as training scripts set it

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def wait_for_peer(signal, wanted):
    while tl.atomic_add(signal, 0) < wanted:
        pass


@triton.jit
def produce_and_signal(values, signal, block: tl.constexpr):
    at = tl.arange(0, block)
    tl.store(values + at, tl.load(values + at) * 2)
    tl.atomic_add(signal, 1)


fixed = begin()
values = torch.ones(256, device="cuda")
bucket = torch.ones(1 << 20, device="cuda")
signal = torch.ones(1, dtype=torch.int32, device="cuda")
wait_for_peer[(1,)](signal, 1)
produce_and_signal[(1,)](values, signal, 256)
bucket.mul_(0.5)
signal.zero_()
torch.cuda.synchronize()

communicate, compute = torch.cuda.Stream(), torch.cuda.Stream()
if fixed:
    with torch.cuda.stream(compute):
        produce_and_signal[(1,)](values, signal, 256)
with torch.cuda.stream(communicate):
    wait_for_peer[(1,)](signal, 1)
    bucket.mul_(0.5)
if not fixed:
    with torch.cuda.stream(compute):
        produce_and_signal[(1,)](values, signal, 256)
torch.cuda.synchronize()
print("ended")
