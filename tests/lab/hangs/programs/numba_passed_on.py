"""Numba: a recurrence over 700 blocks. Each waits for the value of the block before it, and then
computes for tens of milliseconds."""

import numpy as np
from begin import begin

np.row_stack = np.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402


@cuda.jit
def recur(done, values, steps):
    block = cuda.blockIdx.x
    lane = cuda.threadIdx.x
    if lane == 0 and block > 0:
        while cuda.atomic.add(done, block - 1, 0) == 0:
            cuda.nanosleep(1000)
    cuda.syncthreads()
    x = np.float32(lane)
    if block > 0:
        x += values[block - 1, lane]
    for _ in range(steps):
        x = x * np.float32(0.9999) + np.float32(1.0)
    values[block, lane] = x
    cuda.threadfence()
    cuda.syncthreads()
    if lane == 0:
        cuda.atomic.add(done, block, 1)


begin()
done = cuda.to_device(np.zeros(700, np.int32))
values = cuda.to_device(np.zeros((700, 64), np.float32))
recur[700, 64](done, values, np.int32(14_000_000))
cuda.synchronize()
print("ended")
