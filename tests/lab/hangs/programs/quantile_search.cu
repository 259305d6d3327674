// Quantiles of sorted samples by bisection, one thread per query.
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
#include <vector>

constexpr int kSamples = 1 << 20;

__global__ void makeSamples(float *s) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kSamples; i += gridDim.x * blockDim.x)
    s[i] = i * 0.001f;  // sorted
}

// first index whose sample is not below the key
__global__ void lowerBound(const float *s, const float *keys, int *where, int n, int up) {
  int q = blockIdx.x * blockDim.x + threadIdx.x;
  float key = keys[q];
  int lo = 0, hi = n;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (s[mid] < key)
      lo = mid + up;
    else
      hi = mid;
  }
  where[q] = lo;
}

__global__ void gatherDensity(const int *where, float *dens, int q) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < q) dens[i] = (float)(where[i + 1] - where[i]);
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int q = 4096;
  float *s, *keys, *dens;
  int *where;
  CK(cudaMalloc(&s, kSamples * 4));
  CK(cudaMalloc(&keys, q * 4));
  CK(cudaMalloc(&dens, q * 4));
  CK(cudaMalloc(&where, q * 4));
  std::vector<float> k(q);
  for (int i = 0; i < q; ++i) k[i] = i * 0.25f + 0.0005f;
  CK(cudaMemcpy(keys, k.data(), q * 4, cudaMemcpyHostToDevice));
  CK(cudaMemset(dens, 0, q * 4));
  makeSamples<<<256, 256>>>(s);
  CK(cudaDeviceSynchronize());
  printf("%d samples, %d quantiles\n", kSamples, q);
  lowerBound<<<q / 256, 256>>>(s, keys, where, kSamples, fixed ? 1 : 0);
  gatherDensity<<<q / 256, 256>>>(where, dens, q);
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  std::vector<int> w(q);
  CK(cudaMemcpy(w.data(), where, q * 4, cudaMemcpyDeviceToHost));
  printf("quantile 1 at %d, last at %d\n", w[1], w[q - 1]);
  return 0;
}
