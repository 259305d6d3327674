"""PyTorch takes two streams of another library, which wait for its default stream, as it does."""

import cupy
import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def await_halo(halo, out):
    while tl.atomic_add(halo, 0) == 0:
        pass
    tl.store(out, 1.0)


@triton.jit
def send_halo(halo):
    tl.atomic_xchg(halo, 1)


fixed = begin()
halo = torch.zeros(1, dtype=torch.int32, device="cuda")
out, loss = torch.zeros(1, device="cuda"), torch.zeros(1024, device="cuda")
of_library = [cupy.cuda.Stream(non_blocking=fixed) for _ in range(2)]
inner, outer = (torch.cuda.ExternalStream(each.ptr) for each in of_library)
with torch.cuda.stream(outer):  # everything is compiled and loaded
    send_halo[(1,)](halo)
    await_halo[(1,)](halo, out)
torch.cuda.synchronize()
loss.add_(1.0)
halo.zero_()
torch.cuda.synchronize()

with torch.cuda.stream(inner):
    await_halo[(1,)](halo, out)
loss.add_(1.0)
with torch.cuda.stream(outer):
    send_halo[(1,)](halo)
torch.cuda.synchronize()
print("ended")
