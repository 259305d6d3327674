// Conjugate gradients, roughly: cooperative kernels of 2.5 seconds each, with many barriers over
// the grid, and a small kernel after each.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

__device__ unsigned long long nanoseconds() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void iterate(float* x, float* dots, int* go_on, unsigned long long for_ns) {
  auto grid = cg::this_grid();
  const auto began = nanoseconds();
  volatile int* more = go_on;
  for (;;) {
    const int i = grid.thread_rank();
    for (int k = 0; k < 1000; ++k) x[i] = 0.999f * x[i] + 0.001f;
    if (threadIdx.x == 0) atomicAdd(dots, x[i]);
    if (i == 0) *more = nanoseconds() - began < for_ns;
    grid.sync();
    const int again = *more;
    grid.sync();
    if (again == 0) break;
  }
}

__global__ void next_direction(float* dots) { dots[0] = 0; }

int main(int argc, char** argv) {
  begin(argc, argv);
  auto *x = zeros<float>(132 * 256), *dots = zeros<float>(1);
  auto* go_on = zeros<int>(1);
  load(iterate);
  load(next_direction);
  unsigned long long for_ns = 2500000000ull;
  void* arguments[] = {&x, &dots, &go_on, &for_ns};
  for (int i = 0; i < 3; ++i) {
    CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(iterate), dim3(132), dim3(256),
                                      arguments, 0, nullptr));
    next_direction<<<1, 1>>>(dots);
  }
  CHECK(cudaGetLastError());
  return finish();
}
