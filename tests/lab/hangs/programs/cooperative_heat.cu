// Heat over all SMs in one cooperative launch: 90,000 steps with a barrier of the grid after each.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

__global__ void heat(float* now, float* next, int cells, int steps) {
  const int width = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < steps; ++step) {
    for (int at = first + 1; at < cells - 1; at += width)
      next[at] = now[at] + 0.1f * (now[at - 1] - 2.0f * now[at] + now[at + 1]);
    float* kept = now;
    now = next;
    next = kept;
    cg::this_grid().sync();
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  int cells = 96 << 20, steps = 90000;
  auto *now = zeros<float>(cells), *next = zeros<float>(cells);
  void* arguments[] = {&now, &next, &cells, &steps};
  CHECK(cudaLaunchCooperativeKernel(heat, 264, 512, arguments, 0, stream_of_its_own()));
  return finish();
}
