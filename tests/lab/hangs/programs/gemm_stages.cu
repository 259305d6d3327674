// A staged matrix product with asynchronous barriers between a producer warp and consumer warps.
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
#include <cuda/barrier>

constexpr int kStage = 1024;
using Bar = cuda::barrier<cuda::thread_scope_block>;

__global__ void __launch_bounds__(160)
    stagedDot(const float *a, const float *b, float *out, int stages, int consumers) {
  __shared__ float sa[kStage], sb[kStage];
  __shared__ alignas(16) char raw[2 * sizeof(Bar)];
  Bar *filled = (Bar *)raw, *drained = filled + 1;
  if (threadIdx.x == 0) {
    init(filled, 32 + consumers);  // producer warp and consumers
    init(drained, 32 + consumers);
  }
  __syncthreads();
  float acc = 0;
  for (int s = 0; s < stages; ++s) {
    if (threadIdx.x < 32)
      for (int i = threadIdx.x; i < kStage; i += 32) {
        sa[i] = a[(size_t)s * kStage + i];
        sb[i] = b[(size_t)s * kStage + i];
      }
    filled->arrive_and_wait();
    if (threadIdx.x >= 32)
      for (int i = threadIdx.x - 32; i < kStage; i += blockDim.x - 32) acc += sa[i] * sb[i];
    drained->arrive_and_wait();
  }
  if (threadIdx.x >= 32) atomicAdd(out + blockIdx.x, acc);
}
__global__ void fill(float *x, int n, float f) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    x[i] = f * (i % 10);
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int stages = 128, n = stages * kStage;
  float *a, *b, *out;
  CK(cudaMalloc(&a, n * 4));
  CK(cudaMalloc(&b, n * 4));
  CK(cudaMalloc(&out, 64 * 4));
  CK(cudaMemset(out, 0, 64 * 4));
  fill<<<64, 256>>>(a, n, 0.1f);
  fill<<<64, 256>>>(b, n, 0.2f);
  CK(cudaDeviceSynchronize());
  // small tile first, then the large tile with four consumer warps
  stagedDot<<<8, 96>>>(a, b, out, 4, 64);
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  printf("small product done\n");
  int threads = fixed ? 160 : 128;
  stagedDot<<<64, threads>>>(a, b, out, stages, 128);
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  float h;
  CK(cudaMemcpy(&h, out, 4, cudaMemcpyDeviceToHost));
  printf("dot %f\n", h);
  return 0;
}
