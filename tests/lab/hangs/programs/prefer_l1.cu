// A sparse triangular solve in levels. The kernel asks for much L1, which leaves shared memory
// for one block per SM, and two per SM are launched and meet after each level.
#include "begin.cuh"

__global__ void solve_levels(const float* values, float* x, int n, unsigned* arrived) {
  __shared__ float rows[10 * 1024];  // 40 KiB
  for (unsigned level = 1; level <= 12; ++level) {
    for (int i = threadIdx.x; i < 10 * 1024; i += blockDim.x)
      rows[i] = values[(i + blockIdx.x * 1024 + level) % n];
    __syncthreads();
    x[blockIdx.x * blockDim.x + threadIdx.x] += rows[(threadIdx.x * 37) % (10 * 1024)];
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(arrived, 1u);
      while (*static_cast<volatile unsigned*>(arrived) < level * gridDim.x) __nanosleep(50);
    }
    __syncthreads();
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  CHECK(cudaFuncSetAttribute(solve_levels, cudaFuncAttributePreferredSharedMemoryCarveout,
                             fixed ? cudaSharedmemCarveoutMaxShared : cudaSharedmemCarveoutMaxL1));
  const int n = 1 << 20;
  auto *values = zeros<float>(n), *x = zeros<float>(264 * 256);
  auto* arrived = zeros<unsigned>(1);
  solve_levels<<<264, 256>>>(values, x, n, arrived);
  CHECK(cudaGetLastError());
  return finish();
}
