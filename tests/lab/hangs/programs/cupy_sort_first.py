"""CuPy: the first sort of the process is called while a kernel waits for the sorted keys."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void merge_when(const volatile int* ready, float* runs) {
  if (threadIdx.x == 0) while (ready[0] == 0) __nanosleep(100);
  __syncthreads();
  runs[threadIdx.x] += 1;
}
extern "C" __global__ void announce(int* ready) { atomicExch(ready, 1); }
"""

fixed = begin()
module = cupy.RawModule(code=SOURCE)
merge_when, announce = module.get_function("merge_when"), module.get_function("announce")
keys = cupy.arange(1 << 16, 0, -1, dtype=cupy.float32)
ready, runs = cupy.zeros(1, cupy.int32), cupy.zeros(128, cupy.float32)
announce((1,), (1,), (ready,))  # the two kernels are loaded
merge_when((1,), (128,), (ready, runs))
ready.fill(0)
merging, sorting = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
with sorting:
    spare = [cupy.empty(1 << 16, cupy.float32) for _ in range(8)]
    del spare  # the pool of this stream has memory
    if fixed:
        cupy.sort(keys)
cupy.cuda.Device().synchronize()
with merging:
    merge_when((1,), (128,), (ready, runs))
with sorting:
    keys = cupy.sort(keys)
    announce((1,), (1,), (ready,))
cupy.cuda.Device().synchronize()
print("ended")
