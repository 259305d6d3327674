"""Numba: 4,400 ants, each a block of one warp, vote on the next trail, and go on when all voted."""

import numpy as np
from begin import begin

np.row_stack = np.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402


@cuda.jit
def march(votes, pheromone, paths):
    ant = cuda.blockIdx.x
    lane = cuda.threadIdx.x
    paths[ant, lane] = pheromone[(ant * 7 + lane) % pheromone.size] + ant
    cuda.syncthreads()
    if lane == 0:
        cuda.threadfence()
        cuda.atomic.add(votes, ant % 2, 1)
        while cuda.atomic.add(votes, 0, 0) + cuda.atomic.add(votes, 1, 0) < cuda.gridDim.x:
            cuda.nanosleep(500)
    cuda.syncthreads()
    paths[ant, lane] += 1.0


fixed = begin()
pheromone = cuda.to_device(np.ones(1024, np.float32))
paths = cuda.to_device(np.zeros((4400, 32), np.float32))
march[8, 32](cuda.to_device(np.zeros(2, np.int32)), pheromone, paths)
votes = cuda.to_device(np.zeros(2, np.int32))
cuda.synchronize()
march[4200 if fixed else 4400, 32](votes, pheromone, paths)
cuda.synchronize()
print("ended")
