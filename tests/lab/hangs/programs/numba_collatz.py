"""Numba: lengths of Collatz sequences, four kernels of some seconds."""

import numpy as np
from begin import begin

np.row_stack = np.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402

begin()


@cuda.jit
def longest(begins, count, lengths):
    i = cuda.grid(1)
    best = 0
    for k in range(count):
        n = begins[i] + k
        steps = 0
        while n > 1:
            n = 3 * n + 1 if n & 1 else n >> 1
            steps += 1
        best = max(best, steps)
    lengths[i] = best


begins = cuda.to_device(np.arange(16 * 128, dtype=np.int64) * 10_000_000 + 1)
lengths = cuda.to_device(np.zeros(16 * 128, np.int64))
for _ in range(4):
    longest[16, 128](begins, 1_000_000, lengths)
cuda.synchronize()
print("ended")
