"""Gauss-Seidel wavefront on a small tile grid: a tile starts when its upper and its left neighbour
have finished the sweep."""

import sys

import cupy as cp
import numpy as np
import turn

turn.take()

SRC = r"""
extern "C" __global__ void wavefront(float *field, int *swept, int tx, int ty, int tile, int sweep, int periodic)
{
    int x = blockIdx.x % tx, y = blockIdx.x / tx;
    int left = -1, up = -1;
    if (x > 0) left = y * tx + x - 1;
    else if (periodic) left = y * tx + tx - 1;
    if (y > 0) up = (y - 1) * tx + x;
    if (threadIdx.x == 0) {
        if (left >= 0) while (atomicAdd(&swept[left], 0) < sweep) __nanosleep(300);
        if (up >= 0) while (atomicAdd(&swept[up], 0) < sweep) __nanosleep(300);
        __threadfence();
    }
    __syncthreads();
    float *f = field + (long long)blockIdx.x * tile;
    volatile float *l = field + (long long)(left >= 0 ? left : blockIdx.x) * tile;
    for (int i = threadIdx.x; i < tile; i += blockDim.x) f[i] = 0.5f * f[i] + 0.25f * l[i] + 0.01f;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(&swept[blockIdx.x], sweep);
}
"""


def run(kernel, tx, ty, tile, sweeps, periodic):
    field = cp.ones((tx * ty, tile), dtype=cp.float32)
    swept = cp.zeros(tx * ty, dtype=cp.int32)
    cp.cuda.Device().synchronize()
    for s in range(1, sweeps + 1):
        kernel(
            (tx * ty,),
            (128,),
            (
                field,
                swept,
                np.int32(tx),
                np.int32(ty),
                np.int32(tile),
                np.int32(s),
                np.int32(periodic),
            ),
        )
    cp.cuda.Device().synchronize()
    return float(field.mean())


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    kernel = cp.RawKernel(SRC, "wavefront")
    print("open box:", run(kernel, 10, 8, 4096, 12, 0), flush=True)
    # channel flow: the x direction wraps around
    print("channel:", run(kernel, 10, 8, 4096, 12, 0 if fixed else 1), flush=True)


if __name__ == "__main__":
    main()
