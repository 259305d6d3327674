"""Numba: blocks beyond the data skip a cooperative kernel's barrier over the grid."""

import numpy as np
from begin import begin

np.row_stack = np.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402

fixed = begin()


@cuda.jit
def smooth(values, result, rows):
    grid = cuda.cg.this_grid()
    row, i = cuda.blockIdx.x, cuda.grid(1)
    if row < rows:
        values[i] *= 2
        grid.sync()
        result[i] = values[i] + values[(i + 64) % (rows * 64)]


values = cuda.to_device(np.ones(16 * 64, np.float32))
result = cuda.to_device(np.zeros(16 * 64, np.float32))
smooth[16, 64](values, result, 16 if fixed else 12)
cuda.synchronize()
print("ended")
