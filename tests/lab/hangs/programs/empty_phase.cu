// A ring of buffers with a pair of mbarriers each, as in kernels for matrix products. The producer
// begins with the wrong phase: it waits until buffers that were never filled are given back.
#include "begin.cuh"

constexpr int kStages = 4;

__device__ unsigned address(unsigned long long* barrier) {
  return static_cast<unsigned>(__cvta_generic_to_shared(barrier));
}

__device__ void await(unsigned long long* barrier, unsigned phase) {
  unsigned done = 0;
  while (done == 0)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(address(barrier)), "r"(phase)
        : "memory");
}

__device__ void arrive(unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}

__global__ void multiply(int tiles, unsigned first_phase, float* out) {
  __shared__ unsigned long long full[kStages], empty[kStages];
  __shared__ float buffer[kStages];
  if (threadIdx.x == 0)
    for (int i = 0; i < kStages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full[i])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&empty[i])) : "memory");
    }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int tile = 0; tile < tiles; ++tile) {
      await(&empty[tile % kStages], (first_phase + tile / kStages) % 2);
      buffer[tile % kStages] = tile;
      arrive(&full[tile % kStages]);
    }
  } else if (threadIdx.x == 32) {
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      await(&full[tile % kStages], tile / kStages % 2);
      sum += buffer[tile % kStages];
      arrive(&empty[tile % kStages]);
    }
    out[blockIdx.x] = sum;
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* out = zeros<float>(132);
  load(multiply);
  multiply<<<132, 64>>>(100, fixed ? 1 : 0, out);
  CHECK(cudaGetLastError());
  return finish();
}
