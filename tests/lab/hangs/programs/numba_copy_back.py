"""Numba: the host copies a partial result back behind the kernel that waits for its answer."""

import numpy
from begin import begin

numpy.row_stack = numpy.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402


@cuda.jit
def refine(answer, estimate):
    estimate[cuda.threadIdx.x] += 1
    if cuda.threadIdx.x == 0:
        while answer[0] == 0:
            cuda.threadfence_system()
    cuda.syncthreads()
    estimate[cuda.threadIdx.x] *= 2


fixed = begin()
answer = cuda.mapped_array(1, dtype=numpy.int32)
answer[0] = 1
estimate = cuda.to_device(numpy.zeros(64, numpy.float32))
stream = cuda.stream()
refine[1, 64, stream](answer, estimate)  # compiled and loaded
stream.synchronize()
answer[0] = 0
refine[1, 64, stream](answer, estimate)
if fixed:
    answer[0] = 1
partial = estimate.copy_to_host(stream=stream)
stream.synchronize()
answer[0] = 1 if partial[0] < 10 else 2
stream.synchronize()
print("ended")
