// Tile loader: four warps fetch a tile, the other four compute on it.
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

constexpr int kTile = 2048;

template <bool kSplit>
__global__ void __launch_bounds__(256) loadAndCompute(const float *in, float *out, int tiles) {
  __shared__ float tile[kTile];
  __shared__ volatile int full;
  if (threadIdx.x == 0) full = 0;
  __syncthreads();
  for (int t = 0; t < tiles; ++t) {
    if (threadIdx.x < 128) {  // loader warps
      for (int i = threadIdx.x; i < kTile; i += 128) tile[i] = in[(size_t)t * kTile + i];
      if (kSplit)
        asm volatile("bar.sync 1, 128;" ::: "memory");
      else
        __syncthreads();  // the whole tile is in place
      __threadfence_block();
      if (threadIdx.x == 0) full = t + 1;
    } else {  // compute warps
      while (full != t + 1) {
      }
      __threadfence_block();
      float s = 0;
      for (int i = threadIdx.x - 128; i < kTile; i += 128) s += tile[i];
      atomicAdd(&out[t], s);
    }
    __syncthreads();
  }
}

__global__ void ramp(float *x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    x[i] = (i % 100) * 0.01f;
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int tiles = 64;
  float *in, *out;
  CK(cudaMalloc(&in, tiles * kTile * 4));
  CK(cudaMalloc(&out, tiles * 4));
  CK(cudaMemset(out, 0, tiles * 4));
  ramp<<<64, 256>>>(in, tiles * kTile);
  CK(cudaDeviceSynchronize());
  printf("input ready\n");
  if (fixed)
    loadAndCompute<true><<<4, 256>>>(in, out, tiles);
  else
    loadAndCompute<false><<<4, 256>>>(in, out, tiles);
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  float h[tiles];
  CK(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
  printf("tile 0: %f, tile %d: %f\n", h[0], tiles - 1, h[tiles - 1]);
  return 0;
}
