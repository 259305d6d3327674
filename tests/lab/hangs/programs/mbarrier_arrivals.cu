// A ring of stages with an mbarrier each in shared memory. They are made for an arrival of each
// thread, but only the first lane of each warp arrives.
#include <cstdint>

#include "begin.cuh"

constexpr int kThreads = 128, kStages = 3;

__device__ uint32_t in_shared(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ void make(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(in_shared(barrier)), "r"(arrivals)
               : "memory");
}

__device__ void arrive(uint64_t* barrier) {
  asm volatile(
      "{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(in_shared(barrier))
      : "memory");
}

__device__ bool has_passed(uint64_t* barrier, uint32_t parity) {
  uint32_t passed;
  asm volatile(
      "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2;"
      " selp.u32 %0, 1, 0, p; }"
      : "=r"(passed)
      : "r"(in_shared(barrier)), "r"(parity)
      : "memory");
  return passed != 0;
}

__global__ void stages(float* values, int arrivals, int rounds) {
  __shared__ uint64_t barriers[kStages];
  __shared__ float parts[kStages][kThreads];
  if (threadIdx.x == 0)
    for (auto& barrier : barriers) make(&barrier, arrivals);
  __syncthreads();
  float sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const int stage = round % kStages;
    parts[stage][threadIdx.x] = round;
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(&barriers[stage]);
    while (!has_passed(&barriers[stage], round / kStages % 2)) {
    }
    sum += parts[stage][kThreads - 1 - threadIdx.x];
    __syncthreads();
  }
  values[blockIdx.x * kThreads + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* values = zeros<float>(264 * kThreads);
  load(stages);
  stages<<<264, kThreads>>>(values, fixed ? kThreads / 32 : kThreads, 30);
  CHECK(cudaGetLastError());
  return finish();
}
