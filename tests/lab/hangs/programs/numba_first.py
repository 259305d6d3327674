"""Numba: a kernel is compiled and loaded at its first call, while another one waits for it."""

import numpy as np
from begin import begin

np.row_stack = np.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402

fixed = begin()


@cuda.jit
def sink(count, total):
    i = cuda.threadIdx.x
    if i == 0:
        while cuda.atomic.add(count, 0, 0) < 1:
            pass
    cuda.syncthreads()
    total[i] += 1


@cuda.jit
def source(count, values):
    values[cuda.threadIdx.x] = cuda.threadIdx.x
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(count, 0, 1)


draining, filling = cuda.stream(), cuda.stream()
zero, one = np.zeros(1, np.int32), np.ones(1, np.int32)
count = cuda.to_device(one)
total, values = (cuda.to_device(np.zeros(32, np.float32)) for _ in range(2))
sink[1, 32, draining](count, total)
if fixed:
    source[1, 32, filling](count, values)
cuda.synchronize()
count.copy_to_device(zero)
cuda.synchronize()

sink[1, 32, draining](count, total)
source[1, 32, filling](count, values)
cuda.synchronize()
print("ended")
