// A stream-K product: 400 tiles, each of which two blocks share by halves of K. The block of the
// first half adds up and stores the tile, once the block of the second half has left its part.
#include "begin.cuh"

constexpr int kTiles = 400, kThreads = 256, kOwn = 8;

__device__ int acquire(const int* word) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

__global__ void __launch_bounds__(kThreads, 2)
    multiply(const float* a, const float* b, float* parts, int* ready, float* c, int steps,
             int finishing_half) {
  const int tile = blockIdx.x % kTiles, half = blockIdx.x / kTiles;
  float sums[kOwn][kOwn] = {};
  for (int k = half * steps; k < (half + 1) * steps; ++k) {
    float left[kOwn], right[kOwn];
    for (int i = 0; i < kOwn; ++i) left[i] = a[k * 256 + (threadIdx.x / 16) * kOwn + i];
    for (int i = 0; i < kOwn; ++i) right[i] = b[k * 256 + (threadIdx.x % 16) * kOwn + i];
    for (int i = 0; i < kOwn; ++i)
      for (int j = 0; j < kOwn; ++j) sums[i][j] += left[i] * right[j];
  }
  float* part = parts + size_t(tile) * kThreads * kOwn * kOwn + threadIdx.x;
  if (half != finishing_half) {
    for (int i = 0; i < kOwn * kOwn; ++i) part[i * kThreads] = sums[i / kOwn][i % kOwn];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(ready + tile, 1);
    return;
  }
  if (threadIdx.x == 0)
    while (acquire(ready + tile) == 0) __nanosleep(100);
  __syncthreads();
  float* out = c + size_t(tile) * kThreads * kOwn * kOwn + threadIdx.x;
  for (int i = 0; i < kOwn * kOwn; ++i)
    out[i * kThreads] = sums[i / kOwn][i % kOwn] + __ldcg(part + i * kThreads);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int steps = 64;
  auto *a = zeros<float>(2 * steps * 256), *b = zeros<float>(2 * steps * 256);
  const size_t elements = size_t(kTiles) * kThreads * kOwn * kOwn;
  auto *parts = zeros<float>(elements), *c = zeros<float>(elements);
  auto* ready = zeros<int>(kTiles);
  load(multiply);
  multiply<<<2 * kTiles, kThreads>>>(a, b, parts, ready, c, steps, fixed ? 1 : 0);
  CHECK(cudaGetLastError());
  return finish();
}
