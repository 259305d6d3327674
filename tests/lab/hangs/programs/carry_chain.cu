// Long addition with a look-back chain: each block needs the carry state of the block before it and
// refines it before it passes it on.
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

__global__ void chainedCarry(float *state, int *ready, long long refine) {
  int b = blockIdx.x;
  __shared__ float carry;
  if (threadIdx.x == 0) {
    carry = 1.0f;
    if (b > 0) {
      while (atomicAdd(&ready[b - 1], 0) == 0) __nanosleep(1000);
      __threadfence();
      carry = ((volatile float *)state)[b - 1];
    }
    float c = carry;
    for (long long i = 0; i < refine; ++i) c = fmaf(c, 0.9999f, 0.0001f * b);
    ((volatile float *)state)[b] = c;
    __threadfence();
    atomicExch(&ready[b], 1);
  }
  __syncthreads();
}

static float run(int blocks, float *state, int *ready, long long refine) {
  cudaEvent_t a, e;
  float ms;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&e));
  CK(cudaMemset(ready, 0, blocks * 4));
  CK(cudaEventRecord(a));
  chainedCarry<<<blocks, 64>>>(state, ready, refine);
  CK(cudaEventRecord(e));
  CK(cudaGetLastError());
  CK(cudaEventSynchronize(e));
  CK(cudaEventElapsedTime(&ms, a, e));
  return ms;
}

int main() {
  take_turn();
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int blocks = 6000;
  float *state;
  int *ready;
  CK(cudaMalloc(&state, blocks * 4));
  CK(cudaMalloc(&ready, blocks * 4));
  run(64, state, ready, 1000);
  float ms = run(64, state, ready, 400000);
  long long refine = (long long)(400000.0 * 64 * 24000.0 / (ms * blocks));
  printf("short chain %.1f ms; %d links of %lld refinements\n", ms, blocks, refine);
  ms = run(blocks, state, ready, refine);
  float h;
  CK(cudaMemcpy(&h, state + blocks - 1, 4, cudaMemcpyDeviceToHost));
  printf("last carry %f after %.1f s\n", h, ms / 1000);
  return 0;
}
