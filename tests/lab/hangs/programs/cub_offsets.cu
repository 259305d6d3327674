// Compaction: a scatter in a worker's stream is up early, and waits for the offsets. The offsets
// come from CUB, which gets no stream, and a kernel after it says that they are there.
#include <cub/device/device_scan.cuh>

#include "begin.cuh"

constexpr int kRows = 1 << 16;

__global__ void scatter(const volatile int* ready, const int* offsets, const int* counts,
                        int* out) {
  if (threadIdx.x == 0)
    while (*ready == 0) __nanosleep(500);
  __syncthreads();
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < kRows; row += gridDim.x * blockDim.x)
    if (counts[row] > 0) out[__ldcg(offsets + row)] = row;
}

__global__ void announce(int* ready, int value) { atomicExch(ready, value); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *counts = zeros<int>(kRows), *offsets = zeros<int>(kRows), *out = zeros<int>(kRows);
  auto* ready = zeros<int>(1);
  load(scatter);
  size_t bytes = 0;
  CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, counts, offsets, kRows));
  auto* scratch = zeros<char>(bytes);
  CHECK(cub::DeviceScan::ExclusiveSum(scratch, bytes, counts, offsets, kRows));
  announce<<<1, 1>>>(ready, 0);
  CHECK(cudaDeviceSynchronize());

  cudaStream_t worker;
  CHECK(cudaStreamCreateWithFlags(&worker, fixed ? cudaStreamNonBlocking : cudaStreamDefault));
  scatter<<<16, 256, 0, worker>>>(ready, offsets, counts, out);
  CHECK(cub::DeviceScan::ExclusiveSum(scratch, bytes, counts, offsets, kRows));
  announce<<<1, 1>>>(ready, 1);
  CHECK(cudaGetLastError());
  return finish();
}
