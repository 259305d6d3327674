// Batches are staged by the CPU; the device consumer of a batch waits for the doorbell of the
// batch.
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

constexpr int kBatch = 1 << 16;

__global__ void consumeBatch(volatile float *staging, volatile int *doorbell, int batch,
                             float *sum) {
  __shared__ float part;
  if (threadIdx.x == 0) {
    part = 0;
    while (*doorbell < batch) __nanosleep(2000);
    __threadfence_system();
  }
  __syncthreads();
  float s = 0;
  for (int i = threadIdx.x; i < kBatch; i += blockDim.x) s += staging[i];
  atomicAdd(&part, s);
  __syncthreads();
  if (threadIdx.x == 0) *sum += part;
}

struct Pipeline {
  float *staging[2];
  int *doorbell;
  float *sum;
  cudaStream_t s;
  cudaEvent_t consumed[2];
  void ring(int b) {
    __sync_synchronize();
    *(volatile int *)doorbell = b;
  }
  void fill(int b) {
    for (int i = 0; i < kBatch; ++i) staging[b & 1][i] = 1.f / (1 + (i + b) % 8);
  }
  void launch(int b) {
    consumeBatch<<<1, 512, 0, s>>>(staging[b & 1], doorbell, b, sum);
    CK(cudaGetLastError());
    CK(cudaEventRecord(consumed[b & 1], s));
  }
};

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  Pipeline p;
  for (int k = 0; k < 2; ++k) {
    CK(cudaHostAlloc(&p.staging[k], kBatch * 4, cudaHostAllocMapped));
    CK(cudaEventCreateWithFlags(&p.consumed[k], cudaEventDisableTiming));
  }
  CK(cudaHostAlloc(&p.doorbell, 4, cudaHostAllocMapped));
  *p.doorbell = 0;
  CK(cudaMalloc(&p.sum, 4));
  CK(cudaMemset(p.sum, 0, 4));
  CK(cudaStreamCreateWithFlags(&p.s, cudaStreamNonBlocking));
  p.fill(1);
  p.ring(1);
  p.launch(1);
  CK(cudaStreamSynchronize(p.s));
  printf("first batch consumed\n");
  for (int b = 2; b < 20; ++b) {
    p.launch(b);
    // the staging buffer is free once its event has happened
    CK(cudaEventSynchronize(p.consumed[fixed ? (b + 1) & 1 : b & 1]));
    p.fill(b);
    p.ring(b);
    printf("batch %d rung\n", b);
  }
  CK(cudaStreamSynchronize(p.s));
  float h;
  CK(cudaMemcpy(&h, p.sum, 4, cudaMemcpyDeviceToHost));
  printf("sum %f\n", h);
  return 0;
}
