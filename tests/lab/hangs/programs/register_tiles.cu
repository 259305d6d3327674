// Each thread keeps 56 values in registers from one phase to the next, and all blocks meet in
// between. The grid was chosen when a block needed fewer registers, and three fitted on an SM.
#include "begin.cuh"

constexpr int kThreads = 384, kKept = 56;

__global__ void __launch_bounds__(kThreads, 2)
    factorise(const float* in, float* out, unsigned* arrived) {
  const size_t first = static_cast<size_t>(blockIdx.x) * kThreads * kKept + threadIdx.x;
  float kept[kKept];
#pragma unroll
  for (int each = 0; each < kKept; ++each) kept[each] = in[first + each * kThreads];
#pragma unroll
  for (int each = 1; each < kKept; ++each) kept[each] += kept[each - 1] * 0.5f;
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*static_cast<volatile unsigned*>(arrived) < gridDim.x) __nanosleep(50);
  }
  __syncthreads();
#pragma unroll
  for (int each = 0; each < kKept; ++each)
    out[first + each * kThreads] = kept[each] * kept[kKept - 1 - each];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int blocks = fixed ? 264 : 396;
  const size_t count = static_cast<size_t>(blocks) * kThreads * kKept;
  auto *in = zeros<float>(count), *out = zeros<float>(count);
  auto* arrived = zeros<unsigned>(1);
  load(factorise);
  factorise<<<blocks, kThreads>>>(in, out, arrived);
  CHECK(cudaGetLastError());
  return finish();
}
