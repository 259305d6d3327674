"""CuPy: 4,000 walkers of a warp wait for what 300 routers agree on; 224 of them find a place."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void walk(const volatile int* agreed, float* paths) {
  while (agreed[0] == 0) __nanosleep(200);
  paths[blockIdx.x * 32 + threadIdx.x] = 1;
}
extern "C" __global__ void route(int* arrived, int* agreed, float* tables) {
  tables[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;
  __threadfence();
  __syncwarp();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (((volatile int*)arrived)[0] < (int)gridDim.x) __nanosleep(200);
    atomicExch(agreed, 1);
  }
}
"""

fixed = begin()
module = cupy.RawModule(code=SOURCE)
walk, route = module.get_function("walk"), module.get_function("route")
agreed, arrived = cupy.zeros(1, cupy.int32), cupy.zeros(1, cupy.int32)
paths, tables = cupy.zeros((4000, 32), cupy.float32), cupy.zeros((300, 32), cupy.float32)
route((1,), (32,), (arrived, agreed, tables))  # both are loaded
walk((1,), (32,), (agreed, paths))
arrived.fill(0)
agreed.fill(0)
cupy.cuda.Device().synchronize()
walkers, routers = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
with walkers:
    walk((3000 if fixed else 4000,), (32,), (agreed, paths))
with routers:
    route((300,), (32,), (arrived, agreed, tables))
cupy.cuda.Device().synchronize()
print("ended")
