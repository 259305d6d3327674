// A cooperative relaxation takes as many blocks as the GPU holds, while a server of one block waits
// in another stream for what it finds.
#include <cooperative_groups.h>

#include "begin.cuh"

__global__ void __launch_bounds__(1024, 2)
    serve(volatile int* up, const volatile int* converged, float* answer) {
  if (threadIdx.x == 0) *up = 1;
  while (*converged == 0) __nanosleep(1000);
  answer[threadIdx.x] = 1;
}

__global__ void __launch_bounds__(1024, 2)
    relax(float* from, float* to, int sweeps, int* converged) {
  const auto grid = cooperative_groups::this_grid();
  const int cells = 264 * 1024;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (int i = grid.thread_rank(); i < cells; i += grid.size())
      to[i] = 0.5f * (from[(i + 1) % cells] + from[(i + cells - 1) % cells]);
    grid.sync();
    float* other = from;
    from = to;
    to = other;
  }
  if (grid.thread_rank() == 0) atomicExch(converged, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *from = zeros<float>(264 * 1024), *to = zeros<float>(264 * 1024);
  auto* answer = zeros<float>(1024);
  auto* converged = zeros<int>(2);
  auto* up = shared_with_host<int>(1);
  load(serve);
  const auto serving = stream_of_its_own(), solving = stream_of_its_own();
  int sweeps = 4, *unused = converged + 1, per_sm = 0;
  void* first[] = {&from, &to, &sweeps, &unused};
  CHECK(cudaLaunchCooperativeKernel(relax, dim3(132), dim3(1024), first, 0, solving));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, relax, 1024, 0));
  serve<<<1, 1024, 0, serving>>>(up, converged, answer);
  CHECK(cudaGetLastError());
  while (*static_cast<volatile int*>(up) == 0) {
  }
  void* arguments[] = {&from, &to, &sweeps, &converged};
  const int blocks = per_sm * 132 - (fixed ? 2 : 0);
  CHECK(cudaLaunchCooperativeKernel(relax, dim3(blocks), dim3(1024), arguments, 0, solving));
  return finish();
}
