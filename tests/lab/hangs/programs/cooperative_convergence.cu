// A cooperative solver whose blocks decide by their own residual whether they go on: some leave,
// and the others wait at the barrier over the grid.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

__global__ void solve(float* x, float* residuals, int most, bool together) {
  auto grid = cg::this_grid();
  for (int step = 0; step < most; ++step) {
    const int i = grid.thread_rank();
    x[i] *= 0.5f;
    if (threadIdx.x == 0) residuals[blockIdx.x] = x[i];
    grid.sync();
    const float residual = together ? residuals[gridDim.x - 1] : residuals[blockIdx.x];
    if (residual < 1e-3f) break;
    grid.sync();
  }
}

__global__ void start(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1 + blockIdx.x; }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  int blocks = 64, most = 100;
  bool together = fixed;
  auto *x = zeros<float>(blocks * 128), *residuals = zeros<float>(blocks);
  load(solve);
  start<<<blocks, 128>>>(x);
  void* arguments[] = {&x, &residuals, &most, &together};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(solve), dim3(blocks), dim3(128),
                                    arguments, 0, nullptr));
  return finish();
}
