// Outer-product tiles with a producer/consumer split inside one launch: the low block ids multiply,
// the high block ids prepare panels and publish them.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "turn.cuh"
#define CK(x)                                                                    \
  do {                                                                           \
    cudaError_t e_ = (x);                                                        \
    if (e_ != cudaSuccess) {                                                     \
      fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

constexpr int kThreads = 512;
constexpr int kMul = 132;
constexpr int kPanels = 16;
constexpr int kDepth = 8;

struct Panel {
  float a[kDepth][kThreads];
  float b[kDepth][kThreads];
};

__global__ void __launch_bounds__(kThreads, 1)
    multiplyTiles(Panel *panels, int *published, float *out, int multipliers, int makers) {
  int t = threadIdx.x;
  if ((int)blockIdx.x >= multipliers) {  // panel maker
    int m = blockIdx.x - multipliers;
    for (int p = m; p < kPanels; p += makers) {
      for (int d = 0; d < kDepth; ++d) {
        panels[p].a[d][t] = 0.001f * (t + d + p);
        panels[p].b[d][t] = 0.002f * (t - d + p);
      }
      __threadfence();
      __syncthreads();
      if (t == 0) atomicExch(&published[p], 1);
    }
    return;
  }
  float acc[8][8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) acc[i][j] = (float)(i * 8 + j);
  for (int p = 0; p < kPanels; ++p) {
    if (t == 0)
      while (atomicAdd(&published[p], 0) == 0) __nanosleep(300);
    __syncthreads();
    for (int d = 0; d < kDepth; ++d) {
      float ra[8], rb[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        ra[i] = panels[p].a[d][(t + i * 37 + blockIdx.x) % kThreads];
        rb[i] = panels[p].b[d][(t + i * 53 + blockIdx.x) % kThreads];
      }
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(ra[i], rb[j], acc[i][j]);
    }
  }
  float *o = out + ((size_t)blockIdx.x * kThreads + t) * 64;
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) o[i * 8 + j] = acc[i][j];
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  Panel *panels;
  int *published;
  float *out;
  CK(cudaMalloc(&panels, sizeof(Panel) * kPanels));
  CK(cudaMalloc(&published, kPanels * sizeof(int)));
  CK(cudaMalloc(&out, (size_t)kMul * kThreads * 64 * 4));
  CK(cudaMemset(out, 0, (size_t)kMul * kThreads * 64 * 4));
  for (int step = 0; step < 3; ++step) {
    int mul = step < 2 ? 32 << step : (fixed ? 110 : kMul);
    int makers = step < 2 ? 4 : 18;
    CK(cudaMemset(published, 0, kPanels * sizeof(int)));
    printf("step %d: %d multipliers, %d panel makers\n", step, mul, makers);
    multiplyTiles<<<mul + makers, kThreads>>>(panels, published, out, mul, makers);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
  }
  std::vector<float> h(64);
  CK(cudaMemcpy(h.data(), out, 64 * 4, cudaMemcpyDeviceToHost));
  printf("tile[0] = %f\n", h[0]);
  return 0;
}
