// Seat booking: the blocks enter the booking section one after the other, by ticket.
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

__device__ unsigned long long nowNs() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

struct Office {
  unsigned next, serving;
  int free;
};

__global__ void bookSeats(Office *o, int *seats, int n, unsigned long long holdNs) {
  __shared__ int got;
  if (threadIdx.x == 0) {
    unsigned t = atomicAdd(&o->next, 1);
    while (atomicAdd(&o->serving, 0) != t) __nanosleep(2000);
    __threadfence();
    got = -1;
  }
  __syncthreads();
  // look for the best seat: the plan is scored again and again until the quota of time is used
  unsigned long long begin = nowNs();
  int best = 0x7fffffff;
  do {
    for (int i = threadIdx.x; i < n; i += blockDim.x)
      if (((volatile int *)seats)[i] == 0) best = min(best, i);
  } while (nowNs() - begin < holdNs);
  atomicMax(&got, -1);
  __syncthreads();
  if (threadIdx.x == 0) {
    if (best != 0x7fffffff) {
      seats[best] = blockIdx.x + 1;
      atomicSub(&o->free, 1);
    }
    __threadfence();
    atomicAdd(&o->serving, 1);
  }
}

int main() {
  take_turn();
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int n = 1 << 14;
  Office h = {0, 0, n}, *o;
  int *seats;
  CK(cudaMalloc(&o, sizeof *o));
  CK(cudaMalloc(&seats, n * 4));
  CK(cudaMemcpy(o, &h, sizeof h, cudaMemcpyHostToDevice));
  CK(cudaMemset(seats, 0, n * 4));
  bookSeats<<<8, 128>>>(o, seats, n, 1000000ull);
  CK(cudaDeviceSynchronize());
  printf("presale done\n");
  bookSeats<<<110, 128>>>(o, seats, n, 200000000ull);
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  CK(cudaMemcpy(&h, o, sizeof h, cudaMemcpyDeviceToHost));
  printf("%u bookings, %d seats left\n", h.serving, h.free);
  CK(cudaFree(o));
  CK(cudaFree(seats));
  return 0;
}
