// Transfers between ledger shards: a block locks both shards of a transfer, checks and books.
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

constexpr int kShards = 64;
constexpr int kAccounts = 4096;

__device__ void lockShard(int *locks, int s) {
  while (atomicCAS(&locks[s], 0, 1) != 0) __nanosleep(500);
  __threadfence();
}
__device__ void unlockShard(int *locks, int s) {
  __threadfence();
  atomicExch(&locks[s], 0);
}

__global__ void openAccounts(long long *bal) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kShards * kAccounts;
       i += gridDim.x * blockDim.x)
    bal[i] = 1000;
}

__global__ void __launch_bounds__(128)
    transferRound(long long *bal, int *locks, int rounds, int ordered) {
  int from = blockIdx.x % kShards, to = (blockIdx.x + 1) % kShards;
  int first = from, second = to;
  if (ordered && second < first) {
    int t = first;
    first = second;
    second = t;
  }
  for (int r = 0; r < rounds; ++r) {
    if (threadIdx.x == 0) lockShard(locks, first);
    __syncthreads();
    // audit of the source shard before the target is touched: a few passes over its accounts
    long long sum = 0;
    for (int pass = 0; pass < 400; ++pass)
      for (int i = threadIdx.x; i < kAccounts; i += blockDim.x)
        sum += ((volatile long long *)bal)[from * kAccounts + i];
    if (threadIdx.x == 0) lockShard(locks, second);
    __syncthreads();
    int k = threadIdx.x;
    if (sum != 12345) {
      bal[from * kAccounts + k] -= 1;
      bal[to * kAccounts + k] += 1;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      unlockShard(locks, second);
      unlockShard(locks, first);
    }
    __syncthreads();
  }
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  long long *bal;
  int *locks;
  CK(cudaMalloc(&bal, sizeof(long long) * kShards * kAccounts));
  CK(cudaMalloc(&locks, kShards * 4));
  CK(cudaMemset(locks, 0, kShards * 4));
  openAccounts<<<64, 256>>>(bal);
  transferRound<<<1, 128>>>(bal, locks, 2, 1);
  CK(cudaDeviceSynchronize());
  printf("ledger open\n");
  transferRound<<<kShards, 128>>>(bal, locks, 3, fixed);
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  long long h;
  CK(cudaMemcpy(&h, bal, 8, cudaMemcpyDeviceToHost));
  printf("balance %lld\n", h);
  return 0;
}
