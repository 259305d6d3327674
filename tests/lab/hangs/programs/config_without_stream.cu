// A cooperative kernel is launched by a configuration in which the stream was forgotten. It comes
// between a kernel that waits and the one that it waits for, in streams of cudaStreamCreate.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

__global__ void relax(const volatile int* updated, float* x) {
  if (threadIdx.x == 0)
    while (*updated == 0) __nanosleep(100);
  __syncthreads();
  x[threadIdx.x] *= 0.9f;
}

__global__ void norm_of(const float* y, float* parts, float* sum) {
  auto grid = cg::this_grid();
  parts[grid.thread_rank()] = y[grid.thread_rank()] * y[grid.thread_rank()];
  grid.sync();
  if (grid.thread_rank() == 0) *sum = parts[0] + parts[1];
}

__global__ void update(int* updated) { atomicExch(updated, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* updated = zeros<int>(1);
  auto *x = zeros<float>(128), *y = zeros<float>(256), *parts = zeros<float>(256);
  auto* sum = zeros<float>(1);
  load(relax);
  load(norm_of);
  load(update);
  cudaStream_t relaxing, updating;
  CHECK(cudaStreamCreate(&relaxing));
  CHECK(cudaStreamCreate(&updating));
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(2);
  config.blockDim = dim3(128);
  config.attrs = &together;
  config.numAttrs = 1;
  if (fixed) config.stream = stream_of_its_own();
  const auto square = [&] {
    CHECK(cudaLaunchKernelEx(&config, norm_of, static_cast<const float*>(y), parts, sum));
  };
  square();  // warm up
  CHECK(cudaDeviceSynchronize());
  relax<<<1, 128, 0, relaxing>>>(updated, x);
  square();
  update<<<1, 1, 0, updating>>>(updated);
  CHECK(cudaGetLastError());
  return finish();
}
