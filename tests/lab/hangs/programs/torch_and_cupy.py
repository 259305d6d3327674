"""PyTorch's default stream is the legacy one, and CuPy's streams wait for it by default."""

import cupy
import torch
from begin import begin

SOURCE = r"""
extern "C" __global__ void await_mask(volatile float* mask, float* out) {
  if (threadIdx.x == 0) while (mask[0] == 0.0f) __nanosleep(100);
  __syncthreads();
  out[threadIdx.x] = mask[threadIdx.x];
}
"""

fixed = begin()
mask, out = torch.ones(128, device="cuda"), torch.zeros(128, device="cuda")
kernel = cupy.RawKernel(SOURCE, "await_mask")
in_cupy = [cupy.from_dlpack(each) for each in (mask, out)]
stream = cupy.cuda.Stream(non_blocking=fixed)
with stream:
    kernel((1,), (128,), tuple(in_cupy))
stream.synchronize()
mask.fill_(1.0)
mask.fill_(0.0)
torch.cuda.synchronize()

with stream:
    kernel((1,), (128,), tuple(in_cupy))
mask.fill_(1.0)
torch.cuda.synchronize()
print("ended")
