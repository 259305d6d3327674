// Warps of a block are specialised: three compute, one loads, one writes the sums at the end, and
// they use named barriers. The count of the barrier of full tiles is that of all five warps.
#include "begin.cuh"

constexpr int kComputing = 96, kLoader = 32, kWriter = 32, kTiles = 8;
constexpr int kAll = kComputing + kLoader + kWriter;

__device__ void sync_named(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ void arrive_named(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__global__ void specialised(const float* in, float* out, int full_count) {
  __shared__ float tile[kComputing], sums[kComputing];
  constexpr int kFull = 1, kEmpty = 2, kDone = 3;
  if (threadIdx.x >= kComputing + kLoader) {
    sync_named(kDone, kAll);
    for (int at = threadIdx.x - kComputing - kLoader; at < kComputing; at += kWriter)
      out[blockIdx.x * kComputing + at] = sums[at];
    return;
  }
  if (threadIdx.x >= kComputing) {
    for (int number = 0; number < kTiles; ++number) {
      sync_named(kEmpty, kLoader + kComputing);
      for (int at = threadIdx.x - kComputing; at < kComputing; at += kLoader)
        tile[at] = in[number * kComputing + at];
      arrive_named(kFull, full_count);
    }
  } else {
    float sum = 0;
    for (int number = 0; number < kTiles; ++number) {
      arrive_named(kEmpty, kLoader + kComputing);
      sync_named(kFull, full_count);
      sum += tile[kComputing - 1 - threadIdx.x];
    }
    sums[threadIdx.x] = sum;
  }
  arrive_named(kDone, kAll);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *in = zeros<float>(kTiles * kComputing), *out = zeros<float>(132 * kComputing);
  load(specialised);
  specialised<<<132, kAll>>>(in, out, fixed ? kLoader + kComputing : kAll);
  CHECK(cudaGetLastError());
  return finish();
}
