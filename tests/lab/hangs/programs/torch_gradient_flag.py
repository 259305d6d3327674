"""PyTorch: an update waits in a kernel for the backward pass on another stream, one connection."""

import cupy
import torch
from begin import begin

SOURCE = r"""
extern "C" __global__ void await_gradient(const volatile int* ready) {
  if (threadIdx.x == 0) while (ready[0] == 0) __nanosleep(100);
}
"""

fixed = begin()
await_gradient = cupy.RawKernel(SOURCE, "await_gradient")
ready = torch.zeros(1, dtype=torch.int32, device="cuda")
weights, gradient = torch.ones(1 << 16, device="cuda"), torch.ones(1 << 16, device="cuda")
flag = cupy.asarray(ready)
updates, backwards = torch.cuda.Stream(), torch.cuda.Stream()


def update():
    with cupy.cuda.ExternalStream(updates.cuda_stream):
        await_gradient((1,), (32,), (flag,))
    with torch.cuda.stream(updates):
        weights.sub_(gradient)


def backward():
    with torch.cuda.stream(backwards):
        gradient.mul_(0.5)
        ready.fill_(1)


torch.cuda.synchronize()
backward()  # a step in which everything is loaded
torch.cuda.synchronize()
update()
torch.cuda.synchronize()
ready.zero_()
torch.cuda.synchronize()
steps = (backward, update) if fixed else (update, backward)
for step in steps:
    step()
torch.cuda.synchronize()
print("ended")
