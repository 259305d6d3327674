"""Numba: a reduction made with cuda.reduce is first called while a kernel waits for its sum."""

import numpy
from begin import begin

numpy.row_stack = numpy.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402


@cuda.reduce
def total(left, right):
    return left + right


@cuda.jit
def scale_when(summed, values):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.add(summed, 0, 0) == 0:
            cuda.nanosleep(100)
    cuda.syncthreads()
    values[cuda.threadIdx.x] *= 2


@cuda.jit
def announce(summed):
    cuda.atomic.add(summed, 0, 1)


fixed = begin()
summed = cuda.to_device(numpy.zeros(1, numpy.int32))
values = cuda.to_device(numpy.ones(64, numpy.int32))
terms = cuda.to_device(numpy.ones(1 << 14, numpy.int32))
result = cuda.to_device(numpy.zeros(1, numpy.int32))
announce[1, 1](summed)  # both kernels are compiled and loaded
scale_when[1, 64](summed, values)
if fixed:
    total(terms, res=result)
summed.copy_to_device(numpy.zeros(1, numpy.int32))
cuda.synchronize()
scales, sums = cuda.stream(), cuda.stream()
scale_when[1, 64, scales](summed, values)
total(terms, res=result, stream=sums)
announce[1, 1, sums](summed)
cuda.synchronize()
print("ended")
