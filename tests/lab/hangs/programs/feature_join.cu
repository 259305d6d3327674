// Feature join: a lookup kernel with a large cached table probes keys; the keys come in batches
// from a partition kernel which runs beside it in its own stream.
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

constexpr int kTable = 1 << 20;
constexpr int kKeys = 1 << 20;
constexpr int kPartSmem = 96 * 1024;
constexpr int kPartBlocks = 32;

__global__ void buildTable(int *table) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kTable; i += gridDim.x * blockDim.x)
    table[i] = i * 3 + 1;
}

__global__ void __launch_bounds__(256)
    probeKeys(const int *table, const unsigned *keys, unsigned *partsReady, unsigned long long *sum,
              unsigned needed) {
  __shared__ unsigned long long part;
  if (threadIdx.x == 0) {
    part = 0;
    while (atomicAdd(partsReady, 0) < needed) __nanosleep(500);
    __threadfence();
  }
  __syncthreads();
  unsigned long long s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kKeys; i += gridDim.x * blockDim.x)
    s += __ldg(&table[((volatile const unsigned *)keys)[i] & (kTable - 1)]);
  atomicAdd(&part, s);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(sum, part);
}

__global__ void __launch_bounds__(256) partitionKeys(unsigned *keys, unsigned *partsReady) {
  extern __shared__ unsigned bins[];
  for (int i = threadIdx.x; i < kPartSmem / 4; i += blockDim.x) bins[i] = i * 2246822519u;
  __syncthreads();
  int per = kKeys / kPartBlocks;
  for (int i = threadIdx.x; i < per; i += blockDim.x)
    keys[blockIdx.x * per + i] = bins[(i * 7 + blockIdx.x) % (kPartSmem / 4)];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(partsReady, 1);
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  int *table;
  unsigned *keys, *ready;
  unsigned long long *sum;
  CK(cudaMalloc(&table, kTable * 4));
  CK(cudaMalloc(&keys, kKeys * 4));
  CK(cudaMalloc(&ready, 4));
  CK(cudaMalloc(&sum, 8));
  CK(cudaMemset(ready, 0, 4));
  CK(cudaMemset(sum, 0, 8));
  CK(cudaMemset(keys, 0, kKeys * 4));
  // the table lookups live from L1: give them as much of it as there is
  int carve = fixed ? cudaSharedmemCarveoutMaxShared : cudaSharedmemCarveoutMaxL1;
  CK(cudaFuncSetAttribute(buildTable, cudaFuncAttributePreferredSharedMemoryCarveout, carve));
  CK(cudaFuncSetAttribute(probeKeys, cudaFuncAttributePreferredSharedMemoryCarveout, carve));
  CK(cudaFuncSetAttribute(partitionKeys, cudaFuncAttributeMaxDynamicSharedMemorySize, kPartSmem));
  CK(cudaFuncSetAttribute(partitionKeys, cudaFuncAttributePreferredSharedMemoryCarveout,
                          cudaSharedmemCarveoutMaxShared));
  cudaFuncAttributes fa;
  CK(cudaFuncGetAttributes(&fa, partitionKeys));
  printf("partition kernel: %d regs, up to %d bytes of dynamic shared memory\n", fa.numRegs,
         fa.maxDynamicSharedSizeBytes);
  buildTable<<<528, 256>>>(table);
  probeKeys<<<132, 256>>>(table, keys, ready, sum, 0);  // zero keys, warms the table
  CK(cudaDeviceSynchronize());
  CK(cudaMemset(sum, 0, 8));
  cudaStream_t sProbe, sPart;
  CK(cudaStreamCreateWithFlags(&sProbe, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&sPart, cudaStreamNonBlocking));
  CK(cudaDeviceSynchronize());
  probeKeys<<<132, 256, 0, sProbe>>>(table, keys, ready, sum, kPartBlocks);
  CK(cudaGetLastError());
  partitionKeys<<<kPartBlocks, 256, kPartSmem, sPart>>>(keys, ready);
  CK(cudaGetLastError());
  printf("join under way\n");
  CK(cudaDeviceSynchronize());
  unsigned long long h;
  CK(cudaMemcpy(&h, sum, 8, cudaMemcpyDeviceToHost));
  printf("joined sum %llu\n", h);
  return 0;
}
