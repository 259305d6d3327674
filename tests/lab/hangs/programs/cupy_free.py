"""CuPy: giving memory back to the driver waits for a kernel that waits for the host."""

import cupy as cp
import numpy as np
from begin import begin

fixed = begin()
pinned = cp.cuda.alloc_pinned_memory(64)
go = np.frombuffer(pinned, np.int32, 1)
go[0] = 1
run_when_told = cp.RawKernel(
    r"""
extern "C" __global__ void run_when_told(const volatile int* go, float* out) {
  while (*go == 0) {}
  out[threadIdx.x] = 1;
}
""",
    "run_when_told",
)
out = cp.zeros(64, cp.float32)
arguments = (np.uint64(pinned.ptr), out)
run_when_told((1,), (64,), arguments)
cp.cuda.Device().synchronize()
go[0] = 0
scratch = cp.zeros(1 << 26, cp.float32)
cp.cuda.Device().synchronize()

stream = cp.cuda.Stream(non_blocking=True)
with stream:
    run_when_told((1,), (64,), arguments)
del scratch
if fixed:
    go[0] = 1
cp.get_default_memory_pool().free_all_blocks()
go[0] = 1
cp.cuda.Device().synchronize()
print("ended")
