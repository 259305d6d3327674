// A cooperative kernel of very many steps, with a barrier over the grid after each.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

__global__ void stencil(float* a, float* b, int n, int steps) {
  const auto grid = cg::this_grid();
  for (int step = 0; step < steps; ++step) {
    for (int i = grid.thread_rank(); i < n; i += grid.size()) {
      const float left = a[i > 0 ? i - 1 : n - 1], right = a[i < n - 1 ? i + 1 : 0];
      b[i] = 0.5f * a[i] + 0.25f * (left + right);
    }
    grid.sync();
    float* swap = a;
    a = b;
    b = swap;
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  int n = 1 << 22, steps = 4000000;
  auto *a = zeros<float>(n), *b = zeros<float>(n);
  void* arguments[] = {&a, &b, &n, &steps};
  CHECK(cudaLaunchCooperativeKernel(stencil, dim3(264), dim3(512), arguments));
  return finish();
}
