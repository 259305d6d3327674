// Blocks without rows return before the barrier over the grid, which counts on them.
#include "begin.cuh"

__global__ void smooth(const float* rows, float* out, int row_count, int* arrived) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32;
  if (blockIdx.x * 4 >= row_count) return;
  float value = row < row_count ? rows[row * 32 + threadIdx.x % 32] : 0.0f;
  for (int step = 1; step <= 3; ++step) {
    value = 0.25f * (value + 1);
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(arrived, 1);
      while (*static_cast<volatile int*>(arrived) < step * static_cast<int>(gridDim.x)) {
      }
    }
    __syncthreads();
  }
  if (row < row_count) out[row * 32 + threadIdx.x % 32] = value;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int blocks = 64, rows = fixed ? 4 * blocks : 4 * blocks - 9;
  auto *in = zeros<float>(4 * blocks * 32), *out = zeros<float>(4 * blocks * 32);
  auto* arrived = zeros<int>(1);
  smooth<<<blocks, 128>>>(in, out, rows, arrived);
  CHECK(cudaGetLastError());
  return finish();
}
