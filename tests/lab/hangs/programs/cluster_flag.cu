// The second block of a cluster waits for a flag in its shared memory, which the first block sets
// after the barrier of the cluster that the second block comes to later.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2, 1, 1) share_tile(float* out, bool flag_before_barrier) {
  __shared__ int ready;
  __shared__ float tile[128];
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) ready = 0;
  tile[threadIdx.x] = threadIdx.x;
  cluster.sync();
  if (cluster.block_rank() == 0) {
    int* flag = cluster.map_shared_rank(&ready, 1);
    if (flag_before_barrier && threadIdx.x == 0) atomicExch(flag, 1);
    cluster.sync();
    if (threadIdx.x == 0) atomicExch(flag, 1);
  } else {
    if (threadIdx.x == 0)
      while (*static_cast<volatile int*>(&ready) == 0) {
      }
    __syncthreads();
    cluster.sync();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = tile[threadIdx.x];
  cluster.sync();
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* out = zeros<float>(16 * 128);
  share_tile<<<16, 128>>>(out, fixed);
  CHECK(cudaGetLastError());
  return finish();
}
