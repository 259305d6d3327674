// Four domains gather from a source and are then merged by a cooperative kernel each. The source
// comes last, and there are two connections.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

constexpr int kDomains = 4;

__global__ void gather(int* source, float* domain) {
  if (threadIdx.x == 0)
    while (atomicAdd(source, 0) == 0) __nanosleep(100);
  __syncthreads();
  domain[threadIdx.x] += 1;
}

__global__ void merge(float* domain) {
  auto grid = cg::this_grid();
  domain[grid.thread_rank()] *= 2;
  grid.sync();
  domain[grid.thread_rank()] -= 1;
}

__global__ void emit(int* source) { atomicExch(source, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* source = zeros<int>(1);
  auto* domains = zeros<float>(kDomains * 256);
  load(gather);
  load(merge);
  load(emit);
  const auto emitting = stream_of_its_own();
  void* warm_up[] = {&domains};
  CHECK(cudaLaunchCooperativeKernel(merge, dim3(4), dim3(64), warm_up, 0, emitting));
  CHECK(cudaDeviceSynchronize());
  if (fixed) emit<<<1, 1, 0, emitting>>>(source);
  for (int i = 0; i < kDomains; ++i) {
    const auto stream = stream_of_its_own();
    float* domain = domains + i * 256;
    gather<<<1, 256, 0, stream>>>(source, domain);
    void* arguments[] = {&domain};
    CHECK(cudaLaunchCooperativeKernel(merge, dim3(4), dim3(64), arguments, 0, stream));
  }
  if (!fixed) emit<<<1, 1, 0, emitting>>>(source);
  CHECK(cudaGetLastError());
  return finish();
}
