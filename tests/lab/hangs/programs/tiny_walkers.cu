// Thousands of walkers, a warp and a block each, walk until enough collectors are there to take
// what they found. There are two collectors per SM, and a place for one.
#include "begin.cuh"

__global__ void walk(const volatile int* collectors, int wanted, float* found) {
  float x = threadIdx.x + blockIdx.x;
  while (*collectors < wanted) {
    for (int i = 0; i < 64; ++i) x = fmaf(x, 0.99f, 0.1f);
    __nanosleep(100);
  }
  found[blockIdx.x * 32 + threadIdx.x] = x;
}

__global__ void collect(int* collectors, int wanted, float* sums) {
  if (threadIdx.x == 0) {
    atomicAdd(collectors, 1);
    while (atomicAdd(collectors, 0) < wanted) __nanosleep(100);
  }
  __syncwarp();
  sums[blockIdx.x * 32 + threadIdx.x] = 1;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int walkers = 31 * 132, wanted = fixed ? 132 : 264;
  auto* collectors = zeros<int>(1);
  auto *found = zeros<float>(walkers * 32), *sums = zeros<float>(264 * 32);
  load(walk);
  load(collect);
  walk<<<walkers, 32, 0, stream_of_its_own()>>>(collectors, wanted, found);
  usleep(50000);
  collect<<<wanted, 32, 0, stream_of_its_own()>>>(collectors, wanted, sums);
  CHECK(cudaGetLastError());
  return finish();
}
