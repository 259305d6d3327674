"""CuPy: banded edit distances of long strings in one block, a diagonal after the other."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void edit_distance(const char* a, const char* b, int length, int passes,
                                         int* distances) {
  __shared__ int band[3][1026];
  const int at = threadIdx.x + 1;
  for (int pass = 0; pass < passes; ++pass) {
    for (int i = 0; i < 3; ++i) band[i][at] = at;
    __syncthreads();
    for (int d = 2; d < length; ++d) {
      const int* before = band[(d + 1) % 3];
      const int same = a[(d + at) % 65536] == b[(d - at + 65536) % 65536];
      const int kept = band[(d + 2) % 3][at] + (same ? 0 : 1);
      band[d % 3][at] = min(kept, min(before[at - 1 + (at == 1)], before[at]) + 1);
      __syncthreads();
    }
    if (threadIdx.x == 0) distances[pass] = band[(length - 1) % 3][512];
    __syncthreads();
  }
}
"""

begin()
kernel = cupy.RawKernel(SOURCE, "edit_distance")
a, b = ((cupy.arange(65536) % each).astype(cupy.int8) for each in (4, 5))
distances = cupy.zeros(30, cupy.int32)
cupy.cuda.Device().synchronize()
kernel((1,), (1024,), (a, b, 2_000_000, 30, distances))
cupy.cuda.Device().synchronize()
print("ended")
