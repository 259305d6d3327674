"""Numba: half of a block meets at a barrier of the whole block; the other half waits for a flag."""

import numpy
from begin import begin

numpy.row_stack = numpy.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
import numba  # noqa: E402
from numba import cuda  # noqa: E402


@cuda.jit
def halves(values, flags, warps_apart):
    tile = cuda.shared.array(128, numba.float32)
    thread = cuda.threadIdx.x
    block = cuda.blockIdx.x
    tile[thread] = thread
    if thread < 64:
        if warps_apart:
            cuda.syncwarp()
        else:
            cuda.syncthreads()
        if thread == 0:
            cuda.threadfence()
            cuda.atomic.add(flags, block, 1)
    else:
        while cuda.atomic.add(flags, block, 0) == 0:
            cuda.nanosleep(50)
    cuda.syncthreads()
    values[block * 128 + thread] = tile[127 - thread]


fixed = begin()
values = cuda.to_device(numpy.zeros(50 * 128, numpy.float32))
flags = cuda.to_device(numpy.zeros(50, numpy.int32))
halves[50, 128](values, flags, fixed)
cuda.synchronize()
print("ended")
