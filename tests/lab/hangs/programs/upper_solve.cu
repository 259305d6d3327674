// Back substitution for a banded upper triangular system, synchronisation-free: one block per row
// panel, each panel waits for the panel on its right-hand side before it eliminates.
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

constexpr int kPanel = 1024;

__global__ void setupRhs(float *rhs, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) rhs[i] = 1.0f + (i % 17) * 0.25f;
}

__global__ void __launch_bounds__(kPanel, 2)
    backSubstitute(const float *rhs, float *x, int *ready, int panels) {
  int panel = blockIdx.x;
  int row = panel * kPanel + threadIdx.x;
  float v = rhs[row];
  if (panel + 1 < panels) {
    if (threadIdx.x == 0) {
      volatile int *flag = ready + panel + 1;
      while (*flag == 0) __nanosleep(100);
      __threadfence();
    }
    __syncthreads();
    v -= 0.5f * ((volatile float *)x)[row + kPanel];
  }
  x[row] = v * 0.5f;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(&ready[panel], 1);
}

static double residual(const std::vector<float> &x, int n) {
  double worst = 0;
  for (int i = 0; i + kPanel < n; ++i) {
    double r = 2.0 * x[i] + 0.5 * x[i + kPanel] - (1.0 + (i % 17) * 0.25);
    if (r < 0) r = -r;
    if (r > worst) worst = r;
  }
  return worst;
}

static void solve(float *rhs, float *x, int *ready, int panels) {
  CK(cudaMemset(ready, 0, panels * sizeof(int)));
  backSubstitute<<<panels, kPanel>>>(rhs, x, ready, panels);
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  int sizes[3] = {16, 128, fixed ? 256 : 280};
  int maxPanels = 280, n = maxPanels * kPanel;
  float *rhs, *x;
  int *ready;
  CK(cudaMalloc(&rhs, n * 4));
  CK(cudaMalloc(&x, n * 4));
  CK(cudaMalloc(&ready, maxPanels * 4));
  setupRhs<<<(n + 255) / 256, 256>>>(rhs, n);
  CK(cudaDeviceSynchronize());
  for (int s : sizes) {
    printf("solving %d panels (%d unknowns)\n", s, s * kPanel);
    solve(rhs, x, ready, s);
    std::vector<float> h(s * kPanel);
    CK(cudaMemcpy(h.data(), x, h.size() * 4, cudaMemcpyDeviceToHost));
    printf("  residual %.3g\n", residual(h, s * kPanel));
  }
  CK(cudaFree(rhs));
  CK(cudaFree(x));
  CK(cudaFree(ready));
  return 0;
}
