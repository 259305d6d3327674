"""Numba: cuda.stream() and the default stream wait for each other."""

import numpy as np
from begin import begin

np.row_stack = np.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402

fixed = begin()


@cuda.jit
def collect(flags, values, out):
    i = cuda.threadIdx.x
    if i == 0:
        while cuda.atomic.add(flags, 0, 0) == 0:
            pass
    cuda.syncthreads()
    out[i] = values[i] + 1


@cuda.jit
def compute(flags, values):
    i = cuda.threadIdx.x
    values[i] = i
    cuda.threadfence()
    cuda.syncthreads()
    if i == 0:
        cuda.atomic.add(flags, 0, 1)


flags = cuda.to_device(np.zeros(1, np.int32))
values = cuda.to_device(np.zeros(64, np.float32))
out = cuda.to_device(np.zeros(64, np.float32))
compute[1, 64](flags, values)
collect[1, 64](flags, values, out)
cuda.synchronize()
flags.copy_to_device(np.zeros(1, np.int32))
cuda.synchronize()

stream = cuda.stream()
if fixed:
    compute[1, 64](flags, values)
    collect[1, 64, stream](flags, values, out)
else:
    collect[1, 64, stream](flags, values, out)
    compute[1, 64](flags, values)
cuda.synchronize()
print("ended")
