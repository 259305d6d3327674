// A cooperative solver of 132 blocks with one refined cell: in every phase the block that has it
// works for most of a second, and all others wait for it at the barrier of the grid.
#include <cooperative_groups.h>

#include "begin.cuh"

__global__ void solve(float* cells, int phases, int coarse, int refined) {
  const auto grid = cooperative_groups::this_grid();
  float x = cells[grid.thread_rank()];
  for (int phase = 0; phase < phases; ++phase) {
    const int steps = blockIdx.x == phase * 31 % gridDim.x ? refined : coarse;
    for (int step = 0; step < steps; ++step) x = x * 0.99999f + 0.5f;
    cells[grid.thread_rank()] = x;
    grid.sync();
    x += cells[(grid.thread_rank() + 128) % grid.size()];
  }
  cells[grid.thread_rank()] = x;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* cells = zeros<float>(132 * 128);
  int phases = 32, coarse = 1000, refined = 300000000;
  void* arguments[] = {&cells, &phases, &coarse, &refined};
  CHECK(cudaLaunchCooperativeKernel(solve, dim3(132), dim3(128), arguments));
  return finish();
}
