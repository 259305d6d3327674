"""Numba: a table under a sequence number, which is odd while the table is written. One block
writes, and leaves early if there is nothing new; 31 blocks read."""

import numpy as np
from begin import begin

np.row_stack = np.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402


@cuda.jit
def share(sequence, table, news, out, tidy):
    block = cuda.blockIdx.x
    if cuda.threadIdx.x != 0:
        return
    if block == 0:
        cuda.atomic.add(sequence, 0, 1)
        cuda.threadfence()
        if news[0] == 0:
            if tidy:
                cuda.atomic.add(sequence, 0, 1)
            return
        table[0] = news[0]
        cuda.threadfence()
        cuda.atomic.add(sequence, 0, 1)
        return
    while True:
        before = cuda.atomic.add(sequence, 0, 0)
        if before == 0 or before % 2 == 1:
            cuda.nanosleep(200)
            continue
        out[block] = table[0]
        cuda.threadfence()
        if cuda.atomic.add(sequence, 0, 0) == before:
            break


fixed = begin()
sequence, table, news = (cuda.to_device(np.zeros(1, np.int32)) for _ in range(3))
out = cuda.to_device(np.zeros(32, np.int32))
cuda.synchronize()
share[32, 64](sequence, table, news, out, fixed)
cuda.synchronize()
print("ended")
