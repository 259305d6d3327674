"""Relaxation of a long 1-D lattice: one launch does all sweeps, every block keeps its part of the
lattice in shared memory and trades borders with its two neighbours after each sweep."""

import sys
import time

import cupy as cp
import numpy as np
import turn

turn.take()

SRC = r"""
extern "C" __global__ void __launch_bounds__(256)
relax(float *lattice, float *edges, int *sweepDone, int cells, int sweeps)
{
    extern __shared__ float mem[];
    int b = blockIdx.x, nb = gridDim.x;
    float *cur = mem, *nxt = mem + cells;
    for (int i = threadIdx.x; i < cells; i += blockDim.x) cur[i] = lattice[(long long)b * cells + i];
    __syncthreads();
    for (int s = 0; s < sweeps; ++s) {
        float *e = edges + (s & 1) * 2 * nb;
        if (threadIdx.x == 0) {
            ((volatile float *)e)[2 * b] = cur[0];
            ((volatile float *)e)[2 * b + 1] = cur[cells - 1];
            __threadfence();
            atomicExch(&sweepDone[b], s + 1);
            if (b > 0) while (atomicAdd(&sweepDone[b - 1], 0) <= s) __nanosleep(200);
            if (b + 1 < nb) while (atomicAdd(&sweepDone[b + 1], 0) <= s) __nanosleep(200);
            __threadfence();
        }
        __syncthreads();
        float left = b > 0 ? ((volatile float *)e)[2 * (b - 1) + 1] : cur[0];
        float right = b + 1 < nb ? ((volatile float *)e)[2 * (b + 1)] : cur[cells - 1];
        for (int i = threadIdx.x; i < cells; i += blockDim.x) {
            float l = i ? cur[i - 1] : left;
            float r = i + 1 < cells ? cur[i + 1] : right;
            nxt[i] = 0.25f * (l + 2.f * cur[i] + r);
        }
        __syncthreads();
        float *t = cur; cur = nxt; nxt = t;
    }
    for (int i = threadIdx.x; i < cells; i += blockDim.x) lattice[(long long)b * cells + i] = cur[i];
}
"""

CELLS = 9 * 1024  # two buffers of 36 KB


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    relax = cp.RawKernel(SRC, "relax")
    smem = 2 * CELLS * 4
    relax.max_dynamic_shared_size_bytes = smem
    relax.preferred_shared_memory_carveout = 100
    rng = np.random.default_rng(7)
    for blocks, sweeps in ((32, 20), (384 if fixed else 400, 500)):
        lattice = cp.asarray(rng.random(blocks * CELLS, dtype=np.float32))
        edges = cp.zeros(4 * blocks, dtype=cp.float32)
        done = cp.zeros(blocks, dtype=cp.int32)
        cp.cuda.Device().synchronize()
        start = float(lattice.mean())
        t = time.perf_counter()
        print(f"{blocks} blocks, {blocks * CELLS} cells, {sweeps} sweeps", flush=True)
        relax(
            (blocks,),
            (256,),
            (lattice, edges, done, np.int32(CELLS), np.int32(sweeps)),
            shared_mem=smem,
        )
        end = float(lattice.mean())
        print(f"  mean {start:.6f} -> {end:.6f} in {time.perf_counter() - t:.3f} s", flush=True)


if __name__ == "__main__":
    main()
