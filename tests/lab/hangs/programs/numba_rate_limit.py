"""Numba: 24 streams each wait for a rate and then use it; the rate comes on a 25th stream."""

import numpy
from begin import begin

numpy.row_stack = numpy.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402


@cuda.jit
def await_rate(rate):
    while cuda.atomic.add(rate, 0, 0) == 0:
        cuda.nanosleep(200)


@cuda.jit
def use_rate(rate, values):
    values[cuda.threadIdx.x] *= rate[0]


@cuda.jit
def set_rate(rate):
    cuda.atomic.add(rate, 0, 1)


fixed = begin()
rate = cuda.to_device(numpy.zeros(1, numpy.int32))
zero = cuda.to_device(numpy.zeros(1, numpy.int32))
values = [cuda.to_device(numpy.ones(64, numpy.float32)) for _ in range(24)]
set_rate[1, 1](rate)  # all are compiled and loaded
await_rate[1, 1](rate)
use_rate[1, 64](rate, values[0])
rate.copy_to_device(zero)
cuda.synchronize()
streams = [cuda.stream() for _ in range(25)]
if fixed:
    set_rate[1, 1, streams[24]](rate)
for stream, mine in zip(streams, values, strict=False):
    await_rate[1, 1, stream](rate)
    use_rate[1, 64, stream](rate, mine)
if not fixed:
    set_rate[1, 1, streams[24]](rate)
cuda.synchronize()
print("ended")
