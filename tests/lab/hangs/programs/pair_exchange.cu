// Pairs of blocks, put into clusters by an attribute of the launch, keep their particles in
// registers and synchronise all pairs in each step.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

constexpr int kOwn = 36;

__global__ void __launch_bounds__(512, 2) push(float* particles, unsigned* arrived, int steps) {
  __shared__ float halo[512];
  auto pair = cg::this_cluster();
  float own[kOwn];
#pragma unroll
  for (int i = 0; i < kOwn; ++i) own[i] = particles[i * 512 + threadIdx.x];
  for (int step = 1; step <= steps; ++step) {
    halo[threadIdx.x] = own[0];
    pair.sync();
    const float other = *pair.map_shared_rank(&halo[threadIdx.x], pair.block_rank() ^ 1);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) own[i] = fmaf(own[(i + 1) % kOwn], 0.5f, other);
    pair.sync();
    if (threadIdx.x == 0) {
      atomicAdd(arrived, 1u);
      while (atomicAdd(arrived, 0u) < step * gridDim.x) __nanosleep(100);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kOwn; ++i) particles[(blockIdx.x * kOwn + i) * 512 + threadIdx.x] = own[i];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* particles = zeros<float>(280 * kOwn * 512);
  auto* arrived = zeros<unsigned>(1);
  load(push);
  cudaLaunchAttribute pairs{};
  pairs.id = cudaLaunchAttributeClusterDimension;
  pairs.val.clusterDim = {2, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(fixed ? 256 : 280);
  config.blockDim = dim3(512);
  config.stream = stream_of_its_own();
  config.attrs = &pairs;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, push, particles, arrived, 5));
  return finish();
}
