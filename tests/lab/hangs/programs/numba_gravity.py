"""Numba: gravity between two million bodies, each with each, in a few long launches."""

import numpy
from begin import begin

numpy.row_stack = numpy.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402

BODIES = 1 << 21


@cuda.jit
def attract(x, y, ax, ay, softening, one):
    body = cuda.grid(1)
    mine_x, mine_y = x[body], y[body]
    sum_x, sum_y = mine_x - mine_x, mine_x - mine_x
    for other in range(x.size):
        dx, dy = x[other] - mine_x, y[other] - mine_y
        weight = one / (dx * dx + dy * dy + softening)
        sum_x += dx * weight
        sum_y += dy * weight
    ax[body], ay[body] = sum_x, sum_y


begin()
place = numpy.random.default_rng(1).random((2, BODIES), numpy.float32)
x, y = cuda.to_device(place[0]), cuda.to_device(place[1])
ax, ay = cuda.device_array(BODIES, numpy.float32), cuda.device_array(BODIES, numpy.float32)
softening, one = numpy.float32(1e-6), numpy.float32(1)
for _ in range(4):
    attract[BODIES // 128, 128](x, y, ax, ay, softening, one)
cuda.synchronize()
print("ended")
