"""Numba: a kernel on cuda.stream() waits for a mask that a kernel without a stream fills."""

import numpy
from begin import begin

numpy.row_stack = numpy.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402


@cuda.jit
def blur_where(filled, mask, image):
    at = cuda.grid(1)
    if cuda.threadIdx.x == 0:
        while cuda.atomic.add(filled, 0, 0) < 4:
            cuda.nanosleep(100)
    cuda.syncthreads()
    if mask[at] > 0:
        image[at] = image[at] + mask[at]


@cuda.jit
def fill_mask(filled, mask):
    mask[cuda.grid(1)] = 1
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(filled, 0, 1)


fixed = begin()
filled = cuda.to_device(numpy.zeros(1, numpy.int32))
mask = cuda.to_device(numpy.zeros(4 * 128, numpy.int32))
image = cuda.to_device(numpy.zeros(4 * 128, numpy.int32))
fill_mask[4, 128](filled, mask)  # both are compiled and loaded
blur_where[4, 128](filled, mask, image)
filled.copy_to_device(numpy.zeros(1, numpy.int32))
cuda.synchronize()
blurs, masks = cuda.stream(), cuda.stream()
blur_where[4, 128, blurs](filled, mask, image)
if fixed:
    fill_mask[4, 128, masks](filled, mask)
else:
    fill_mask[4, 128](filled, mask)
cuda.synchronize()
print("ended")
