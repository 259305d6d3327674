// Blocks of clusters find no room beside a kernel that waits for them on all SMs.
#include <cooperative_groups.h>

#include "begin.cuh"

namespace cg = cooperative_groups;

constexpr int kHolder = 120 * 1024, kCluster = 150 * 1024;  // bytes of shared memory

__global__ void __cluster_dims__(4, 1, 1)
    reduce_pages(const float* pages, float* sums, int* ready) {
  extern __shared__ float page[];
  auto cluster = cg::this_cluster();
  page[threadIdx.x] = pages[blockIdx.x * 128 + threadIdx.x];
  cluster.sync();
  float sum = 0;
  for (unsigned rank = 0; rank < 4; ++rank) {
    sum += cluster.map_shared_rank(page, rank)[threadIdx.x];
  }
  sums[blockIdx.x * 128 + threadIdx.x] = sum;
  __threadfence();
  cluster.sync();
  if (threadIdx.x == 0) atomicAdd(ready, 1);
}

__global__ void decode(const float* sums, int* ready, float* out) {
  extern __shared__ float state[];
  if (threadIdx.x == 0)
    while (*static_cast<volatile int*>(ready) < 8) {
    }
  __syncthreads();
  state[threadIdx.x] = sums[threadIdx.x];
  out[blockIdx.x * 128 + threadIdx.x] = state[threadIdx.x];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* pages = zeros<float>(8 * 128);
  auto* sums = zeros<float>(8 * 128);
  auto* out = zeros<float>(132 * 128);
  auto* ready = zeros<int>(1);
  allow(reduce_pages, kCluster);
  allow(decode, kHolder);
  const auto first = stream_of_its_own(), second = stream_of_its_own();
  if (fixed) reduce_pages<<<8, 128, kCluster, second>>>(pages, sums, ready);
  decode<<<132, 128, kHolder, first>>>(sums, ready, out);
  if (!fixed) reduce_pages<<<8, 128, kCluster, second>>>(pages, sums, ready);
  CHECK(cudaGetLastError());
  return finish();
}
