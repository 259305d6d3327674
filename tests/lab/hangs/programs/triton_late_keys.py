"""Triton: attention waits for the keys that another stream computes, over one connection."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def await_keys(ready):
    while tl.atomic_add(ready, 0) == 0:
        pass


@triton.jit
def attend(keys, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.exp(tl.load(keys + at)))


@triton.jit
def project_keys(keys, ready, block: tl.constexpr):
    at = tl.arange(0, block)
    tl.store(keys + at, tl.load(keys + at) * 0.5)
    tl.debug_barrier()
    tl.atomic_add(ready, 1)


fixed = begin()
keys, out = torch.ones(1024, device="cuda"), torch.ones(1024, device="cuda")
ready = torch.zeros(1, dtype=torch.int32, device="cuda")
attention, projection = torch.cuda.Stream(), torch.cuda.Stream()


def consumer():
    with torch.cuda.stream(attention):
        await_keys[(1,)](ready)
        attend[(4,)](keys, out, block=256)


def producer():
    with torch.cuda.stream(projection):
        project_keys[(1,)](keys, ready, block=1024)


torch.cuda.synchronize()
producer()  # once, so that all is compiled and loaded
torch.cuda.synchronize()
consumer()
torch.cuda.synchronize()
ready.zero_()
torch.cuda.synchronize()
for step in (producer, consumer) if fixed else (consumer, producer):
    step()
torch.cuda.synchronize()
print("ended")
