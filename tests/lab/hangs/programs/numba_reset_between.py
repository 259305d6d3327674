"""Numba: counters are reset by a kernel without a stream, between kernels with a stream each."""

import numpy as np
from begin import begin

np.row_stack = np.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402

fixed = begin()


@cuda.jit
def drain(level, out):
    i = cuda.threadIdx.x
    if i == 0:
        while cuda.atomic.add(level, 0, 0) == 0:
            pass
    cuda.syncthreads()
    out[i] += 1


@cuda.jit
def reset(counters):
    counters[cuda.threadIdx.x] = 0


@cuda.jit
def fill(level):
    cuda.atomic.add(level, 0, 1)


draining, filling = cuda.stream(), cuda.stream()
level = cuda.to_device(np.zeros(1, np.int32))
counters, out = (cuda.to_device(np.zeros(64, np.int32)) for _ in range(2))
fill[1, 1, filling](level)  # everything is compiled and loaded
filling.synchronize()
drain[1, 64, draining](level, out)
draining.synchronize()
reset[1, 64](counters)
reset[1, 1](level)
cuda.synchronize()

drain[1, 64, draining](level, out)
if fixed:
    reset[1, 64, filling](counters)
else:
    reset[1, 64](counters)
fill[1, 1, filling](level)
cuda.synchronize()
print("ended")
