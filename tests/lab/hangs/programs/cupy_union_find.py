"""CuPy: the roots of a forest, in which two parents point to each other."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void find_roots(const volatile int* parent, int* root, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int at = i;
  while (parent[at] != at) at = parent[at];
  root[i] = at;
}
"""

fixed = begin()
n = 1 << 14
parent = cupy.arange(n, dtype=cupy.int32) // 2
if not fixed:
    parent[1000] = 2001  # its own child
root = cupy.zeros(n, cupy.int32)
find_roots = cupy.RawKernel(SOURCE, "find_roots")
find_roots((n // 256,), (256,), (parent, root, cupy.int32(n)))
cupy.cuda.Device().synchronize()
print("ended")
