// A consumer waits in a stream for norms. They come from a cooperative kernel, launched with the
// arguments that have no default.
#include <cooperative_groups.h>

#include "begin.cuh"

__global__ void consume(const int* done, float* norms, float* x) {
  int seen;
  do {
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(done) : "memory");
  } while (seen == 0);
  x[threadIdx.x] /= 1 + __ldcg(norms);
}

__global__ void row_norms(const float* y, float* norms, int* done, int last) {
  const auto grid = cooperative_groups::this_grid();
  const float value = y[grid.thread_rank()];
  atomicAdd(norms, value * value);
  grid.sync();
  if (grid.thread_rank() == 0) {
    norms[0] = sqrtf(norms[0]);
    __threadfence();
    atomicExch(done, last);
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* done = zeros<int>(1);
  auto *norms = zeros<float>(1), *x = zeros<float>(128), *y = zeros<float>(8 * 128);
  load(consume);
  cudaStream_t consuming, solving;
  CHECK(cudaStreamCreate(&consuming));
  CHECK(cudaStreamCreate(&solving));
  int last = 0;
  void* arguments[] = {&y, &norms, &done, &last};
  CHECK(cudaLaunchCooperativeKernel(row_norms, dim3(8), dim3(128), arguments));
  CHECK(cudaDeviceSynchronize());

  last = 1;
  consume<<<1, 128, 0, consuming>>>(done, norms, x);
  CHECK(cudaGetLastError());
  if (fixed)
    CHECK(cudaLaunchCooperativeKernel(row_norms, dim3(8), dim3(128), arguments, 0, solving));
  else
    CHECK(cudaLaunchCooperativeKernel(row_norms, dim3(8), dim3(128), arguments));
  return finish();
}
