// Breadth-first search, a level at a time: blocks of 768 threads, and a barrier between the levels.
#include "begin.cuh"

__global__ void levels(const int* edges, int* depth, int n, int most, int* count) {
  for (int level = 0; level < most; ++level) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x)
      if (depth[v] == level && depth[edges[v]] == 0) depth[edges[v]] = level + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(count, 1);
      const int all = (level + 1) * gridDim.x;
      int seen;
      do {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
      } while (seen < all);
    }
    __syncthreads();
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int n = 1 << 20;
  auto* edges = zeros<int>(n);
  auto* depth = zeros<int>(n);
  auto* count = zeros<int>(1);
  levels<<<1, 768>>>(edges, depth, n, 0, count);  // warm up
  CHECK(cudaDeviceSynchronize());
  levels<<<fixed ? 264 : 300, 768>>>(edges, depth, n, 12, count);
  CHECK(cudaGetLastError());
  return finish();
}
