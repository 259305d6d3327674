// Jacobi sweeps in one kernel with a barrier of all blocks made by hand. The grid follows the size
// of the domain, and an SM holds three tiles.
#include "begin.cuh"

constexpr int kThreads = 256, kTile = 72 * 256;  // floats: 72 KiB

__device__ void wait_for_all(unsigned* arrived, unsigned wanted) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*static_cast<volatile unsigned*>(arrived) < wanted) {
    }
  }
  __syncthreads();
}

__global__ void jacobi(float* cells, unsigned* arrived, int sweeps) {
  extern __shared__ float tile[];
  float* mine = cells + static_cast<size_t>(blockIdx.x) * kTile;
  for (int at = threadIdx.x; at < kTile; at += kThreads) tile[at] = mine[at];
  __syncthreads();
  for (int sweep = 1; sweep <= sweeps; ++sweep) {
    for (int at = threadIdx.x + 1; at < kTile - 1; at += kThreads)
      tile[at] = 0.5f * (tile[at - 1] + tile[at + 1]);
    wait_for_all(arrived, gridDim.x * sweep);
  }
  for (int at = threadIdx.x; at < kTile; at += kThreads) mine[at] = tile[at];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int tiles = fixed ? 396 : 450;
  auto* cells = zeros<float>(static_cast<size_t>(tiles) * kTile);
  auto* arrived = zeros<unsigned>(1);
  allow(jacobi, kTile * sizeof(float));
  jacobi<<<tiles, kThreads, kTile * sizeof(float)>>>(cells, arrived, 20);
  CHECK(cudaGetLastError());
  return finish();
}
