// A cooperative solver starts with all of its blocks or not at all. Ten SMs are taken by a
// controller that waits for the solver.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

constexpr int kShared = 120 * 1024;

__global__ void control(const volatile int* solved, float* result) {
  extern __shared__ float history[];
  history[threadIdx.x] = 0;
  if (threadIdx.x == 0)
    while (*solved == 0) __nanosleep(200);
  __syncthreads();
  result[blockIdx.x * 64 + threadIdx.x] = history[threadIdx.x];
}

__global__ void solve(float* x, int* solved) {
  extern __shared__ float rows[];
  auto grid = cg::this_grid();
  for (int step = 0; step < 10; ++step) {
    rows[threadIdx.x] = 0.5f * x[blockIdx.x * 256 + threadIdx.x] + step;
    grid.sync();
    x[blockIdx.x * 256 + threadIdx.x] = rows[255 - threadIdx.x];
    grid.sync();
  }
  if (grid.thread_rank() == 0) atomicExch(solved, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* solved = zeros<int>(1);
  auto *x = zeros<float>(132 * 256), *result = zeros<float>(10 * 64);
  allow(control, kShared);
  allow(solve, kShared);
  void* arguments[] = {&x, &solved};
  const auto solving = stream_of_its_own();
  const auto launch = [&](int blocks) {
    CHECK(cudaLaunchCooperativeKernel(solve, dim3(blocks), dim3(256), arguments, kShared, solving));
  };
  launch(1);  // warm up
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemset(solved, 0, sizeof(int)));
  CHECK(cudaDeviceSynchronize());
  control<<<10, 64, kShared, stream_of_its_own()>>>(solved, result);
  CHECK(cudaGetLastError());
  usleep(100000);
  launch(fixed ? 122 : 132);
  return finish();
}
