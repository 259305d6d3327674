// A server has a block on every SM and waits for what a cluster of eight blocks computes. Beside
// the server no SM has the shared memory that a block of the cluster asks for.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

__global__ void serve(const volatile int* answers, int wanted, float* out) {
  extern __shared__ float cache[];
  cache[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0)
    while (*answers < wanted) __nanosleep(200);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = cache[threadIdx.x];
}

__global__ void __cluster_dims__(8, 1, 1) gather(int* answers, float* sums) {
  extern __shared__ float part[];
  cg::cluster_group cluster = cg::this_cluster();
  part[threadIdx.x] = cluster.block_rank();
  cluster.sync();
  float sum = 0;
  for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank)
    sum += cluster.map_shared_rank(part, rank)[threadIdx.x];
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  cluster.sync();
  if (threadIdx.x == 0) atomicAdd(answers, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* answers = zeros<int>(1);
  auto *out = zeros<float>(132 * 256), *sums = zeros<float>(8 * 256);
  const int for_server = 150 << 10, for_cluster = fixed ? 40 << 10 : 100 << 10;
  allow(serve, for_server);
  allow(gather, for_cluster);
  const cudaStream_t server = stream_of_its_own(), clusters = stream_of_its_own();
  serve<<<132, 256, for_server, server>>>(answers, 8, out);
  usleep(50000);
  gather<<<8, 256, for_cluster, clusters>>>(answers, sums);
  CHECK(cudaGetLastError());
  return finish();
}
