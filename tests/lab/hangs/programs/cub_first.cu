// The first reduction of CUB in a process, while a kernel waits for its result.
#include <cub/device/device_reduce.cuh>

#include "begin.cuh"

__global__ void normalise(float* values, int n, const volatile int* total) {
  int sum;
  while ((sum = *total) == 0) {
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] /= sum;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int n = 1 << 20;
  auto *counts = zeros<int>(n), *total = zeros<int>(1);
  auto* values = zeros<float>(n);
  CHECK(cudaMemset(counts, 1, sizeof(int) * n));
  size_t bytes = 4 << 20;
  auto* workspace = zeros<char>(bytes);
  load(normalise);
  const auto normalising = stream_of_its_own(), counting = stream_of_its_own();
  if (fixed) {
    CHECK(cub::DeviceReduce::Sum(workspace, bytes, counts, total, n, counting));
    CHECK(cudaMemsetAsync(total, 0, sizeof(int), counting));
    CHECK(cudaDeviceSynchronize());
  }
  normalise<<<1, 256, 0, normalising>>>(values, n, total);
  CHECK(cudaGetLastError());
  CHECK(cub::DeviceReduce::Sum(workspace, bytes, counts, total, n, counting));
  return finish();
}
