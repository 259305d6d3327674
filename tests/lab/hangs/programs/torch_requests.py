"""PyTorch: 20 requests have a stream each, and wait for weights that come in one more stream."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def await_weights(version):
    while tl.atomic_add(version, 0) == 0:
        pass


@triton.jit
def send_weights(version):
    tl.atomic_xchg(version, 1)


fixed = begin()
version = torch.zeros(1, dtype=torch.int32, device="cuda")
states = [torch.zeros(256, device="cuda") for _ in range(20)]
streams, control = [torch.cuda.Stream() for _ in states], torch.cuda.Stream()
with torch.cuda.stream(control):  # everything is compiled and loaded
    send_weights[(1,)](version)
    await_weights[(1,)](version)
    states[0].add_(1.0)
    states[0].mul_(0.5)
control.synchronize()
version.zero_()
torch.cuda.synchronize()

if fixed:
    with torch.cuda.stream(control):
        send_weights[(1,)](version)
for state, stream in zip(states, streams, strict=True):
    with torch.cuda.stream(stream):
        await_weights[(1,)](version)
        state.add_(1.0)
        state.mul_(0.5)
if not fixed:
    with torch.cuda.stream(control):
        send_weights[(1,)](version)
torch.cuda.synchronize()
print("ended")
