"""Numba compiles a kernel for each type of its arguments: here for doubles, when one waits."""

import numpy as np
from begin import begin

np.row_stack = np.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402

fixed = begin()


@cuda.jit
def await_weight(weight, out):
    while cuda.atomic.add(weight, 0, 0.0) == 0.0:
        pass
    out[0] += 1


@cuda.jit
def add_weight(weight, amount):
    cuda.atomic.add(weight, 0, amount[0])


single = [cuda.to_device(np.ones(1, np.float32)) for _ in range(2)]
zero = np.zeros(1, np.float64)
weight, amount = cuda.to_device(zero), cuda.to_device(zero + 1)
out = cuda.to_device(np.zeros(1, np.int32))
waiting, adding = cuda.stream(), cuda.stream()
add_weight[1, 1, adding](*single)
await_weight[1, 1, waiting](amount, out)
if fixed:
    add_weight[1, 1, adding](weight, amount)
adding.synchronize()
weight.copy_to_device(zero)
cuda.synchronize()

await_weight[1, 1, waiting](weight, out)
add_weight[1, 1, adding](weight, amount)
cuda.synchronize()
print("ended")
