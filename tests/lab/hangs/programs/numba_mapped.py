"""Numba: the host waits for a stream, whose kernel waits for a mapped array that comes after."""

import numpy as np
from begin import begin

np.row_stack = np.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402

fixed = begin()


@cuda.jit
def relay(doors, log):
    while doors[0] == 0:
        cuda.threadfence_system()
    log[0] += 1


doors = cuda.mapped_array(1, dtype=np.int32)
log = cuda.to_device(np.zeros(1, np.int32))
stream = cuda.stream()
doors[0] = 1
relay[1, 1, stream](doors, log)
stream.synchronize()

doors[0] = 0
relay[1, 1, stream](doors, log)
if fixed:
    doors[0] = 1
stream.synchronize()
doors[0] = 1
stream.synchronize()
print("ended")
