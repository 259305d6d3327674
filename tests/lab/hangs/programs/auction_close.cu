// Auction: the settlement kernel is launched early and waits for the closing bell; the bell thread
// rings when the auction time is over.
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
#include <chrono>
#include <thread>

constexpr int kBids = 1 << 16;

__global__ void placeBids(float *bids) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kBids; i += gridDim.x * blockDim.x)
    bids[i] = (i * 2654435761u >> 16) * 0.01f;
}
__global__ void settle(const float *bids, volatile int *bell, int round, int *best) {
  if (threadIdx.x == 0)
    while (*bell < round) __nanosleep(5000);
  __syncthreads();
  float m = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kBids; i += gridDim.x * blockDim.x)
    m = fmaxf(m, bids[i]);
  atomicMax(best, __float_as_int(m));
}

int main() {
  take_turn();
  setvbuf(stdout, nullptr, _IOLBF, 0);
  float *bids;
  int *best, *bell;
  CK(cudaMalloc(&bids, kBids * 4));
  CK(cudaMalloc(&best, 4));
  CK(cudaMemset(best, 0, 4));
  CK(cudaHostAlloc(&bell, 4, cudaHostAllocMapped));
  *bell = 0;
  cudaStream_t s;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  placeBids<<<64, 256, 0, s>>>(bids);
  settle<<<16, 256, 0, s>>>(bids, bell, 0, best);
  CK(cudaStreamSynchronize(s));
  printf("opening price known\n");
  std::thread clock([&] {
    std::this_thread::sleep_for(std::chrono::seconds(21));
    *(volatile int *)bell = 1;
  });
  settle<<<16, 256, 0, s>>>(bids, bell, 1, best);
  CK(cudaGetLastError());
  CK(cudaStreamSynchronize(s));
  clock.join();
  int h;
  CK(cudaMemcpy(&h, best, 4, cudaMemcpyDeviceToHost));
  float price;
  memcpy(&price, &h, 4);
  printf("sold at %.2f\n", price);
  CK(cudaFree(bids));
  CK(cudaFree(best));
  CK(cudaFreeHost(bell));
  return 0;
}
