"""Merges per-lane histograms into shared bins, each bin guarded by a small lock."""

import sys

import cupy as cp
import numpy as np
import turn

turn.take()

SRC = r"""
extern "C" __global__ void merge_bins(const int *sample, int n, int *bins, int nbins, int per_lane)
{
    __shared__ int lock[64];
    __shared__ int local_bins[64];
    for (int b = threadIdx.x; b < 64; b += blockDim.x) { lock[b] = 0; local_bins[b] = 0; }
    __syncthreads();
    for (int k = 0; k < per_lane; ++k) {
        int s = sample[(blockIdx.x * blockDim.x + threadIdx.x + k * 977) % n];
        int b = s % nbins;
        bool stored = false;
        while (!stored) {
            if (atomicCAS(&lock[b], 0, 1) == 0) {
                ((volatile int *)local_bins)[b] += 1;
                SYNC
                __threadfence_block();
                atomicExch(&lock[b], 0);
                stored = true;
            }
        }
    }
    __syncthreads();
    for (int b = threadIdx.x; b < nbins; b += blockDim.x) atomicAdd(&bins[b], local_bins[b]);
}
"""


def build(with_sync):
    code = SRC.replace("SYNC", "__syncwarp(0xffffffffu);" if with_sync else "")
    return cp.RawKernel(code, "merge_bins")


def merge(kernel, sample, nbins, blocks, per_lane):
    bins = cp.zeros(nbins, dtype=cp.int32)
    kernel(
        (blocks,), (32,), (sample, np.int32(sample.size), bins, np.int32(nbins), np.int32(per_lane))
    )
    cp.cuda.Device().synchronize()
    return bins


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    rng = np.random.default_rng(11)
    sample = cp.asarray(rng.integers(0, 1 << 20, 1 << 16).astype(np.int32))
    print("samples", sample.size, "mean", float(sample.mean()), flush=True)
    reference = cp.bincount(sample % 8, minlength=8)
    print("reference", reference.get().tolist(), flush=True)
    kernel = build(with_sync=not fixed)
    bins = merge(kernel, sample, 8, 16, 64)
    print("merged", bins.get().tolist(), "total", int(bins.sum()), flush=True)


if __name__ == "__main__":
    main()
