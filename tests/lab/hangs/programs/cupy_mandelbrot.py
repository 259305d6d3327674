"""CuPy: a large Mandelbrot set with many iterations, in one launch of some ten seconds."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void mandelbrot(int* counts, int size, int most) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  float a = (at % size) * 2.5f / size - 2.0f, b = (at / size) * 2.5f / size - 1.25f;
  float x = 0, y = 0;
  int count = 0;
  while (count < most && x * x + y * y < 4.0f) {
    float kept = x * x - y * y + a;
    y = 2 * x * y + b;
    x = kept;
    ++count;
  }
  counts[at] = count;
}
"""

begin()
mandelbrot = cupy.RawKernel(SOURCE, "mandelbrot")
size = 8192
counts = cupy.zeros((size, size), cupy.int32)
mandelbrot((size * size // 256,), (256,), (counts, cupy.int32(size), cupy.int32(3_000_000)))
cupy.cuda.Device().synchronize()
print("ended")
