// Two blocks of a cluster: the second waits in its shared memory for a word that the first writes
// after the next barrier of the cluster, at which the second never arrives.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2, 1, 1) hand_over(float* out, bool write_first) {
  __shared__ int word;
  cg::cluster_group cluster = cg::this_cluster();
  const bool writes = cluster.block_rank() == 0;
  if (threadIdx.x == 0) word = 0;
  cluster.sync();
  int* other = cluster.map_shared_rank(&word, 1);
  if (writes && threadIdx.x == 0 && write_first) atomicExch(other, 1);
  if (!writes && threadIdx.x == 0)
    while (atomicAdd(&word, 0) == 0) {
    }
  cluster.sync();
  if (writes && threadIdx.x == 0 && !write_first) atomicExch(other, 1);
  cluster.sync();
  out[blockIdx.x * blockDim.x + threadIdx.x] = word;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* out = zeros<float>(40 * 128);
  load(hand_over);
  hand_over<<<40, 128>>>(out, fixed);
  CHECK(cudaGetLastError());
  return finish();
}
