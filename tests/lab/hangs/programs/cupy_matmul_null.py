"""CuPy: a matrix product in the default stream, between two kernels in streams of Stream()."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void await_mesh(volatile int* mesh, float* x) {
  if (threadIdx.x == 0) while (mesh[0] == 0) __nanosleep(100);
  __syncthreads();
  x[threadIdx.x] += 1;
}
extern "C" __global__ void build_mesh(int* mesh) { if (threadIdx.x == 0) atomicExch(mesh, 1); }
"""

fixed = begin()
module = cupy.RawModule(code=SOURCE)
await_mesh, build_mesh = module.get_function("await_mesh"), module.get_function("build_mesh")
mesh, x = cupy.zeros(1, cupy.int32), cupy.zeros(128, cupy.float32)
a, b, c = (cupy.ones((256, 256), cupy.float32) for _ in range(3))
first, second = (cupy.cuda.Stream(non_blocking=fixed) for _ in range(2))
build_mesh((1,), (32,), (mesh,))  # everything is loaded
await_mesh((1,), (128,), (mesh, x))
cupy.matmul(a, b, out=c)
mesh.fill(0)
cupy.cuda.Device().synchronize()

with first:
    await_mesh((1,), (128,), (mesh, x))
cupy.matmul(a, b, out=c)
with second:
    build_mesh((1,), (32,), (mesh,))
cupy.cuda.Device().synchronize()
print("ended")
