// Two kernels at once whose threads have arrays of their own, in local memory. One reaches its
// array through a pointer that could point elsewhere: by generic addresses. Prints how many threads
// have a wrong result.
#include <cstdio>
#include <vector>

constexpr int kWords = 8;

// Sorts numbers in an array of the thread; where they go depends on them.
__host__ __device__ unsigned sorted(const unsigned seed, unsigned* const elsewhere) {
  unsigned mine[kWords];
  unsigned* const words = elsewhere ? elsewhere : mine;
  unsigned value = seed;
  for (int k = 0; k < kWords; ++k) {
    value = value * 1664525U + 1013904223U;
    int at = k;
    for (; at > 0 && words[at - 1] > value; --at) words[at] = words[at - 1];
    words[at] = value;
  }
  unsigned sum = 0;
  for (int k = 0; k < kWords; ++k) sum = sum * 31 + words[k];
  return sum;
}

__global__ void local(unsigned* sums) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  sums[thread] = sorted(thread, nullptr);
}

__global__ void generic(unsigned* sums, unsigned* elsewhere) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  sums[thread] = sorted(thread, elsewhere);
}

int main() {
  constexpr int kBlocks = 140, kThreads = 32, kCount = kBlocks * kThreads;
  unsigned* sums[2];
  cudaStream_t streams[2];
  for (int k = 0; k < 2; ++k) {
    cudaMalloc(&sums[k], kCount * sizeof(unsigned));
    cudaStreamCreate(&streams[k]);
  }
  local<<<kBlocks, kThreads, 0, streams[0]>>>(sums[0]);
  generic<<<kBlocks, kThreads, 0, streams[1]>>>(sums[1], nullptr);
  cudaDeviceSynchronize();
  int wrong[2] = {};
  for (int k = 0; k < 2; ++k) {
    std::vector<unsigned> found(kCount);
    cudaMemcpy(found.data(), sums[k], kCount * sizeof(unsigned), cudaMemcpyDeviceToHost);
    for (int thread = 0; thread < kCount; ++thread)
      wrong[k] += found[thread] != sorted(thread, nullptr);
  }
  std::printf("local memory: of %d threads %d are wrong, and %d with generic addresses\n", kCount,
              wrong[0], wrong[1]);
}
