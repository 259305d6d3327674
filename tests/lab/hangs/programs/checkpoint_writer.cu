// Compute blocks and one checkpoint block: the checkpoint block sums the state whenever all compute
// blocks have finished an epoch.
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

constexpr int kWorkers = 24;

template <typename Word>
__global__ void runEpochs(float *state, Word *epochDone, float *ckpt, int epochs, int n) {
  int b = blockIdx.x;
  if (b < kWorkers) {
    for (int e = 1; e <= epochs; ++e) {
      for (int k = 0; k < 2000; ++k)
        for (int i = threadIdx.x; i < n; i += blockDim.x) state[b * n + i] += 0.5f * e;
      __threadfence();
      __syncthreads();
      if (threadIdx.x == 0) atomicExch((int *)&epochDone[b], e);
    }
    return;
  }
  // checkpoint block
  for (int e = 1; e <= epochs; ++e) {
    if (threadIdx.x < kWorkers) {
      int polls = 0;
      while (epochDone[threadIdx.x] < e) ++polls;
      if (polls == -1) ckpt[1] = 1.f;
    }
    __syncthreads();
    float s = 0;
    for (int i = threadIdx.x; i < kWorkers * n; i += blockDim.x) s += ((volatile float *)state)[i];
    atomicAdd(ckpt, s);
    __syncthreads();
  }
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int n = 2048, epochs = 5;
  float *state, *ckpt;
  int *done;
  CK(cudaMalloc(&state, kWorkers * n * 4));
  CK(cudaMalloc(&ckpt, 8));
  CK(cudaMalloc(&done, kWorkers * 4));
  CK(cudaMemset(state, 0, kWorkers * n * 4));
  CK(cudaMemset(ckpt, 0, 8));
  CK(cudaMemset(done, 0, kWorkers * 4));
  CK(cudaDeviceSynchronize());
  printf("%d workers, %d epochs\n", kWorkers, epochs);
  if (fixed)
    runEpochs<volatile int><<<kWorkers + 1, 256>>>(state, done, ckpt, epochs, n);
  else
    runEpochs<int><<<kWorkers + 1, 256>>>(state, done, ckpt, epochs, n);
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  float h;
  CK(cudaMemcpy(&h, ckpt, 4, cudaMemcpyDeviceToHost));
  printf("checkpoint sum %g\n", h);
  return 0;
}
