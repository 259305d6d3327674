// A cellular automaton on a ring that fits into shared memory; only the last generation is written.
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

constexpr int kRing = 8192;

__global__ void __launch_bounds__(512)
    evolve(unsigned char *ring, long long generations, int rule) {
  __shared__ unsigned char buf[2][kRing];
  for (int i = threadIdx.x; i < kRing; i += blockDim.x) buf[0][i] = ring[blockIdx.x * kRing + i];
  __syncthreads();
  int cur = 0;
  for (long long g = 0; g < generations; ++g) {
    for (int i = threadIdx.x; i < kRing; i += blockDim.x) {
      int l = buf[cur][(i + kRing - 1) & (kRing - 1)], m = buf[cur][i],
          r = buf[cur][(i + 1) & (kRing - 1)];
      buf[cur ^ 1][i] = (rule >> (l * 4 + m * 2 + r)) & 1;
    }
    __syncthreads();
    cur ^= 1;
  }
  for (int i = threadIdx.x; i < kRing; i += blockDim.x) ring[blockIdx.x * kRing + i] = buf[cur][i];
}
__global__ void sow(unsigned char *ring) {
  for (int i = threadIdx.x; i < kRing; i += blockDim.x)
    ring[blockIdx.x * kRing + i] = (i * (blockIdx.x + 3) >> 4) & 1;
}

static float evolveTimed(unsigned char *ring, int worlds, long long g) {
  cudaEvent_t a, b;
  float ms;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  evolve<<<worlds, 512>>>(ring, g, 110);
  CK(cudaEventRecord(b));
  CK(cudaGetLastError());
  CK(cudaEventSynchronize(b));
  CK(cudaEventElapsedTime(&ms, a, b));
  return ms;
}

int main() {
  take_turn();
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int worlds = 12;
  unsigned char *ring;
  CK(cudaMalloc(&ring, worlds * kRing));
  sow<<<worlds, 256>>>(ring);
  evolveTimed(ring, worlds, 100);
  float ms = evolveTimed(ring, worlds, 200000);
  long long g = (long long)(200000.0 * 25000.0 / ms);
  printf("%.1f ms for 200000 generations, now %lld\n", ms, g);
  ms = evolveTimed(ring, worlds, g);
  unsigned char h[64];
  CK(cudaMemcpy(h, ring, 64, cudaMemcpyDeviceToHost));
  int alive = 0;
  for (unsigned char c : h) alive += c;
  printf("%d of 64 cells alive after %.1f s\n", alive, ms / 1000);
  return 0;
}
