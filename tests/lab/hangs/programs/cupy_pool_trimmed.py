"""CuPy: a kernel streams batches that the host puts into pinned memory, one by one. Between two of
them the host gives the blocks back that its memory pool does not use."""

import cupy
import cupyx
import numpy as np
from begin import begin

SOURCE = r"""
extern "C" __global__ void consume(const volatile int* batch, int batches, float* sums) {
  for (int i = 1; i <= batches; ++i) {
    if (threadIdx.x == 0)
      while (batch[0] < i) __nanosleep(1000);
    __syncthreads();
    sums[threadIdx.x] += i;
  }
}
"""

fixed = begin()
consume = cupy.RawKernel(SOURCE, "consume")
batch, sums = cupyx.zeros_pinned(1, np.int32), cupy.zeros(64, cupy.float32)
consume((1,), (64,), (batch.ctypes.data, cupy.int32(0), sums))
scratch = cupy.zeros(1 << 24, cupy.float32)
scratch += 1
del scratch
cupy.cuda.Device().synchronize()
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    consume((1,), (64,), (batch.ctypes.data, cupy.int32(4), sums))
for i in range(1, 5):
    batch[0] = i
    if i == 2 and not fixed:
        cupy.get_default_memory_pool().free_all_blocks()
cupy.cuda.Device().synchronize()
print("ended")
