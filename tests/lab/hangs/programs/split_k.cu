// A product with its depth split in two: the first half of the blocks adds what the second
// computes.
#include "begin.cuh"

constexpr int kOwn = 18;  // accumulators of each thread

__global__ void __launch_bounds__(1024)
    product(const double* a, const double* b, double* parts, int* done, double* out, bool last) {
  double sums[kOwn];
#pragma unroll
  for (int k = 0; k < kOwn; ++k) sums[k] = 0;
  for (int depth = 0; depth < 64; ++depth) {
    const double x = a[depth * 1024 + threadIdx.x];
#pragma unroll
    for (int k = 0; k < kOwn; ++k) sums[k] += x * b[depth * kOwn + k];
  }
  const int half = gridDim.x / 2, tile = blockIdx.x % half;
  const bool owner = (blockIdx.x >= half) == last;
  double* mine = parts + (static_cast<size_t>(tile) * 1024 + threadIdx.x) * kOwn;
  if (!owner) {
#pragma unroll
    for (int k = 0; k < kOwn; ++k) mine[k] = sums[k];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(&done[tile], 1);
    return;
  }
  if (threadIdx.x == 0)
    while (atomicCAS(&done[tile], 1, 1) != 1) {
    }
  __syncthreads();
  double total = 0;
#pragma unroll
  for (int k = 0; k < kOwn; ++k) total += sums[k] + __ldcg(&mine[k]);
  out[tile * 1024 + threadIdx.x] = total;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *a = zeros<double>(64 * 1024), *b = zeros<double>(64 * kOwn);
  auto* parts = zeros<double>(132 * 1024 * kOwn);
  auto* done = zeros<int>(132);
  auto* out = zeros<double>(132 * 1024);
  load(product);
  product<<<264, 1024>>>(a, b, parts, done, out, fixed);
  CHECK(cudaGetLastError());
  return finish();
}
