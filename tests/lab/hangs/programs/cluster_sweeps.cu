// Clusters of eight blocks sweep over a ring: a step is a read of the neighbour's shared memory
// and a barrier of the cluster. There are very many steps.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

__global__ void __cluster_dims__(8, 1, 1) sweep(long steps, float* out) {
  __shared__ float own[2][64];
  auto cluster = cg::this_cluster();
  const unsigned left = (cluster.block_rank() + 7) % 8;
  own[0][threadIdx.x] = blockIdx.x;
  cluster.sync();
  for (long step = 0; step < steps; ++step) {
    float x = *cluster.map_shared_rank(&own[step % 2][threadIdx.x], left);
#pragma unroll 1
    for (int i = 0; i < 100; ++i) x = fmaf(x, 0.999f, 0.25f);
    own[(step + 1) % 2][threadIdx.x] = x;
    cluster.sync();
  }
  out[blockIdx.x * 64 + threadIdx.x] = own[0][threadIdx.x];
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* out = zeros<float>(64 * 64);
  load(sweep);
  sweep<<<64, 64>>>(20'000'000, out);
  CHECK(cudaGetLastError());
  return finish();
}
