// A split-K product whose 300 slices are added in turn: a block loads its slice and computes on it
// only when the block before it has passed the semaphore on.
#include "begin.cuh"

__global__ void slices(const float* a, float* c, int* semaphore, int steps) {
  if (threadIdx.x == 0)
    while (*static_cast<volatile int*>(semaphore) != blockIdx.x) __nanosleep(500);
  __syncthreads();
  float x = a[threadIdx.x];
  for (int step = 0; step < steps; ++step) x = x * 0.9999f + 1;
  c[threadIdx.x] = __ldcg(c + threadIdx.x) + x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(semaphore, blockIdx.x + 1);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto *a = zeros<float>(256), *c = zeros<float>(256);
  auto* semaphore = zeros<int>(1);
  load(slices);
  slices<<<300, 256>>>(a, c, semaphore, 32000000);
  CHECK(cudaGetLastError());
  return finish();
}
