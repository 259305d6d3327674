"""Numba: a barrier over 4300 blocks of a warp, of which 32 have room on each SM."""

import numpy as np
from begin import begin

np.row_stack = np.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402

fixed = begin()


@cuda.jit(max_registers=40)
def normalise(values, arrived, total):
    i = cuda.grid(1)
    cuda.atomic.add(total, 0, values[i])
    cuda.threadfence()
    cuda.syncwarp()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(arrived, 0, 1)
        while cuda.atomic.add(arrived, 0, 0) < cuda.gridDim.x:
            pass
    cuda.syncwarp()
    values[i] = values[i] / total[0]


blocks = 4224 if fixed else 4300
values = cuda.to_device(np.ones(blocks * 32, np.float32))
arrived = cuda.to_device(np.zeros(1, np.int32))
total = cuda.to_device(np.zeros(1, np.float32))
normalise[blocks, 32](values, arrived, total)
cuda.synchronize()
print("ended")
