"""PyTorch: nonzero waits for its stream, in which a kernel waits for a number from the host."""

import ctypes

import cupy
import torch
from begin import begin

SOURCE = r"""
extern "C" __global__ void await_threshold(const volatile int* threshold, float* scores) {
  if (threadIdx.x == 0) while (*threshold == 0) __nanosleep(1000);
  __syncthreads();
  scores[threadIdx.x] -= (float)*threshold;
}
"""

fixed = begin()
scores = torch.full((256,), 2.0, device="cuda")
scores.nonzero()
pinned = cupy.cuda.alloc_pinned_memory(4)
threshold = ctypes.c_int.from_address(pinned.ptr)
threshold.value = 0
kernel = cupy.RawKernel(SOURCE, "await_threshold")
kernel.compile()
stream = torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(stream), cupy.cuda.ExternalStream(stream.cuda_stream):
    kernel((1,), (256,), (cupy.uint64(pinned.ptr), cupy.uint64(scores.data_ptr())))
    if fixed:
        threshold.value = 1
    kept = scores.nonzero()
    threshold.value = max(1, len(kept))
torch.cuda.synchronize()
print("ended")
