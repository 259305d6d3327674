"""CuPy: blocks that have no rows return at once, and the others wait for all blocks of the grid."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void power_step(float* rows, int count, unsigned* arrived, int expected) {
  if (blockIdx.x * blockDim.y >= count) return;
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row < count) rows[row * 32 + threadIdx.x] *= 0.5f;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    atomicAdd(arrived, 1u);
    while (((volatile unsigned*)arrived)[0] < (unsigned)expected) { }
  }
  __syncthreads();
  if (row < count) rows[row * 32 + threadIdx.x] += rows[threadIdx.x];
}
"""

fixed = begin()
power_step = cupy.RawKernel(SOURCE, "power_step")
count, height, blocks = 1000, 8, 128
rows, arrived = cupy.ones((count, 32), cupy.float32), cupy.zeros(1, cupy.uint32)
expected = -(-count // height) if fixed else blocks
power_step((blocks,), (32, height), (rows, cupy.int32(count), arrived, cupy.int32(expected)))
cupy.cuda.Device().synchronize()
print("ended")
