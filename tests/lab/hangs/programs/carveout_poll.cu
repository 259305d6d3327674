// A kernel that prefers the L1 cache holds all SMs, and polls for what one with shared memory
// makes.
#include "begin.cuh"

constexpr int kShared = 100 * 1024, kOwn = 18;

// Its registers leave room for no second block on an SM.
__global__ void __launch_bounds__(1024) watch(double* values, volatile int* assembled, int until) {
  double own[kOwn];
#pragma unroll
  for (int k = 0; k < kOwn; ++k) own[k] = values[k * 1024 + threadIdx.x];
  while (*assembled < until) {
  }
#pragma unroll
  for (int k = 0; k < kOwn; ++k) own[k] += own[(k + 1) % kOwn] * own[(k + 5) % kOwn];
#pragma unroll
  for (int k = 0; k < kOwn; ++k) values[k * 1024 + threadIdx.x] = own[k];
}

__global__ void assemble(float* out, int* assembled) {
  extern __shared__ float part[];
  part[threadIdx.x] = blockIdx.x;
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = part[63 - threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(assembled, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* values = zeros<double>(kOwn * 1024);
  auto* out = zeros<float>(132 * 64);
  auto* assembled = zeros<int>(1);
  CHECK(cudaFuncSetAttribute(watch, cudaFuncAttributePreferredSharedMemoryCarveout,
                             fixed ? cudaSharedmemCarveoutMaxShared : cudaSharedmemCarveoutMaxL1));
  allow(assemble, kShared);
  watch<<<132, 1024, 0, stream_of_its_own()>>>(values, assembled, 132);
  CHECK(cudaGetLastError());
  assemble<<<132, 64, kShared, stream_of_its_own()>>>(out, assembled);
  CHECK(cudaGetLastError());
  return finish();
}
