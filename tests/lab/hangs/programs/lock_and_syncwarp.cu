// Each lane takes the lock of its bucket and releases it after a __syncwarp of the whole warp,
// which the lanes that still wait for the same bucket do not reach.
#include "begin.cuh"

__device__ void take(int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) __nanosleep(20);
  __threadfence();
}

__device__ void release(int* lock) {
  __threadfence();
  atomicExch(lock, 0);
}

__global__ void insert(int* locks, int* sizes, int buckets, bool all_lanes) {
  const int key = blockIdx.x * blockDim.x + threadIdx.x, bucket = key % buckets;
  if (all_lanes) {
    take(locks + bucket);
    sizes[bucket] += 1;
    __syncwarp();
    release(locks + bucket);
  } else {
    for (int lane = 0; lane < 32; ++lane) {
      if (lane == threadIdx.x % 32) {
        take(locks + bucket);
        *const_cast<volatile int*>(sizes + bucket) += 1;
        release(locks + bucket);
      }
      __syncwarp();
    }
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  constexpr int kBuckets = 24;
  auto *locks = zeros<int>(kBuckets), *sizes = zeros<int>(kBuckets);
  load(insert);
  insert<<<8, 64>>>(locks, sizes, kBuckets, !fixed);
  CHECK(cudaGetLastError());
  return finish();
}
