// Sorts particle keys (cell ids) with a one-kernel LSD counting sort: all digit passes run inside
// one launch, with a grid-wide barrier between the passes.
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

constexpr int kThreads = 256;
constexpr int kDigits = 16;            // 4 bits per pass
constexpr size_t kStage = 100 * 1024;  // staging buffer per block

__device__ unsigned g_arrived;
__device__ volatile unsigned g_epoch;

__device__ void gridSync(unsigned blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned e = g_epoch;
    __threadfence();
    if (atomicAdd(&g_arrived, 1) == blocks - 1) {
      g_arrived = 0;
      __threadfence();
      g_epoch = e + 1;
    } else {
      while (g_epoch == e) __nanosleep(200);
    }
    __threadfence();
  }
  __syncthreads();
}

__global__ void fillKeys(unsigned *keys, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    keys[i] = (unsigned)i * 2654435761u >> 8;
}

__global__ void __launch_bounds__(kThreads)
    countPasses(const unsigned *keys, unsigned *hist, int n, int passes) {
  extern __shared__ unsigned stage[];
  for (int p = 0; p < passes; ++p) {
    for (int d = threadIdx.x; d < kDigits; d += blockDim.x) stage[d] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
      atomicAdd(&stage[(keys[i] >> (4 * p)) & 15], 1u);
    __syncthreads();
    for (int d = threadIdx.x; d < kDigits; d += blockDim.x)
      atomicAdd(&hist[p * kDigits + d], stage[d]);
    gridSync(gridDim.x);
  }
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int n = 1 << 22, passes = 6;
  unsigned *keys, *hist;
  CK(cudaMalloc(&keys, n * sizeof(unsigned)));
  CK(cudaMalloc(&hist, passes * kDigits * sizeof(unsigned)));
  CK(cudaMemset(hist, 0, passes * kDigits * sizeof(unsigned)));
  fillKeys<<<1024, 256>>>(keys, n);
  CK(cudaDeviceSynchronize());
  CK(cudaFuncSetAttribute(countPasses, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)kStage));
  CK(cudaFuncSetAttribute(countPasses, cudaFuncAttributePreferredSharedMemoryCarveout,
                          cudaSharedmemCarveoutMaxShared));
  int blocks = fixed ? 240 : 300;
  printf("sorting %d keys in %d passes with %d blocks\n", n, passes, blocks);
  countPasses<<<blocks, kThreads, kStage>>>(keys, hist, n, passes);
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  std::vector<unsigned> h(passes * kDigits);
  CK(cudaMemcpy(h.data(), hist, h.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  unsigned long long s = 0;
  for (unsigned v : h) s += v;
  printf("counted %llu keys (expected %llu)\n", s, (unsigned long long)n * passes);
  CK(cudaFree(keys));
  CK(cudaFree(hist));
  return 0;
}
