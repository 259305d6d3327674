"""Numba: a chain over 700 blocks in which each waits for the next, and the last start last."""

import numpy
from begin import begin

numpy.row_stack = numpy.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
import numba  # noqa: E402
from numba import cuda  # noqa: E402

TILE = 10000


@cuda.jit
def suffix_sums(values, carries, done, turned):
    tile = cuda.shared.array(TILE, numba.float32)
    block = cuda.blockIdx.x
    if turned:
        block = cuda.gridDim.x - 1 - block
    for at in range(cuda.threadIdx.x, TILE, cuda.blockDim.x):
        tile[at] = values[block] + at
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        if block + 1 < cuda.gridDim.x:
            while cuda.atomic.add(done, block + 1, 0) == 0:
                cuda.nanosleep(100)
        cuda.atomic.add(carries, block, tile[TILE - 1])
        cuda.threadfence()
        cuda.atomic.add(done, block, 1)
    cuda.syncthreads()
    for at in range(cuda.threadIdx.x, TILE, cuda.blockDim.x):
        if tile[at] < 0:
            values[block] = tile[at]


fixed = begin()
values = cuda.to_device(numpy.ones(700, numpy.float32))
carries = cuda.to_device(numpy.zeros(700, numpy.float32))
done = cuda.to_device(numpy.zeros(700, numpy.int32))
suffix_sums[700, 128](values, carries, done, fixed)
cuda.synchronize()
print("ended")
