// Level-synchronous BFS over an implicit grid graph. One warp-sized block per vertex slice; a level
// starts once all slices have reported the size of their part of the frontier.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "turn.cuh"
#define CK(x)                                                                    \
  do {                                                                           \
    cudaError_t e_ = (x);                                                        \
    if (e_ != cudaSuccess) {                                                     \
      fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

constexpr int kSide = 2048;

__global__ void resetLevels(int *level, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    level[i] = i == 0 ? 0 : -1;
}

__global__ void __launch_bounds__(32)
    expandLevels(int *level, unsigned *reported, unsigned *frontier, int n, int levels) {
  int slice = (n + gridDim.x - 1) / gridDim.x;
  int lo = blockIdx.x * slice, hi = min(lo + slice, n);
  for (int l = 0; l < levels; ++l) {
    unsigned found = 0;
    for (int v = lo + threadIdx.x; v < hi; v += 32) {
      if (((volatile int *)level)[v] != -1) continue;
      int x = v % kSide, y = v / kSide;
      bool near = (x > 0 && ((volatile int *)level)[v - 1] == l) ||
                  (y > 0 && ((volatile int *)level)[v - kSide] == l);
      if (near) {
        ((volatile int *)level)[v] = l + 1;
        ++found;
      }
    }
    if (found) atomicAdd(&frontier[l], found);
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) {
      atomicAdd(&reported[l], 1u);
      while (atomicAdd(&reported[l], 0u) < gridDim.x) __nanosleep(1000);
    }
    __syncwarp();
    __threadfence();
  }
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int n = kSide * kSide, levels = 24;
  int *level;
  unsigned *reported, *frontier;
  CK(cudaMalloc(&level, n * sizeof(int)));
  CK(cudaMalloc(&reported, levels * sizeof(unsigned)));
  CK(cudaMalloc(&frontier, levels * sizeof(unsigned)));
  for (int round = 0; round < 2; ++round) {
    resetLevels<<<512, 256>>>(level, n);
    CK(cudaMemset(reported, 0, levels * sizeof(unsigned)));
    CK(cudaMemset(frontier, 0, levels * sizeof(unsigned)));
    // first a coarse run, then the finer slicing
    int slices = round == 0 ? 512 : (fixed ? 4096 : 4352);
    printf("bfs round %d with %d slices\n", round, slices);
    expandLevels<<<slices, 32>>>(level, reported, frontier, n, levels);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
    unsigned f[levels];
    CK(cudaMemcpy(f, frontier, sizeof f, cudaMemcpyDeviceToHost));
    printf("  frontier sizes: %u %u %u ... %u\n", f[0], f[1], f[2], f[levels - 1]);
  }
  CK(cudaFree(level));
  CK(cudaFree(reported));
  CK(cudaFree(frontier));
  return 0;
}
