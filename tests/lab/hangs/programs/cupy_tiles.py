"""CuPy: tiles of a picture are labelled in shared memory, and all meet before labels merge."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void label_tiles(const int* picture, int* labels, int* met) {
  extern __shared__ int tile[];
  for (int i = threadIdx.x; i < 15000; i += blockDim.x) tile[i] = picture[i] + blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(met, 1);
    while (*(volatile int*)met < gridDim.x) __nanosleep(100);
  }
  __syncthreads();
  labels[blockIdx.x * blockDim.x + threadIdx.x] = tile[14999 - threadIdx.x];
}
"""

fixed = begin()
kernel = cupy.RawKernel(SOURCE, "label_tiles")
kernel.max_dynamic_shared_size_bytes = 60 * 1024
blocks = 396 if fixed else 400
picture, met = cupy.zeros(15000, cupy.int32), cupy.zeros(1, cupy.int32)
labels = cupy.zeros(400 * 192, cupy.int32)
cupy.cuda.Device().synchronize()
kernel((blocks,), (192,), (picture, labels, met), shared_mem=60 * 1024)
cupy.cuda.Device().synchronize()
print("ended")
