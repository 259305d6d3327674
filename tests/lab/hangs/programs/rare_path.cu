// Batches whose size is no multiple of 32 take a kernel of their own. The first such batch comes
// when the kernel that collects all batches runs already.
#include "begin.cuh"

__global__ void collect(const volatile int* batches, int wanted, float* total) {
  if (threadIdx.x == 0)
    while (*batches < wanted) __nanosleep(200);
  __syncthreads();
  total[threadIdx.x] += 1;
}

__global__ void whole_warps(float* batch, int* batches) {
  batch[threadIdx.x] *= 2;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(batches, 1);
}

__global__ void ragged(float* batch, int n, int* batches) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) batch[i] *= 2;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(batches, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *batch = zeros<float>(1024), *total = zeros<float>(64);
  auto* batches = zeros<int>(1);
  load(collect);
  load(whole_warps);
  if (fixed) load(ragged);
  const auto collector = stream_of_its_own(), worker = stream_of_its_own();
  const int sizes[] = {128, 256, 64, 512, 100, 32};
  collect<<<1, 64, 0, collector>>>(batches, 6, total);
  CHECK(cudaGetLastError());
  for (const int size : sizes) {
    if (size % 32 == 0)
      whole_warps<<<1, size, 0, worker>>>(batch, batches);
    else
      ragged<<<1, 128, 0, worker>>>(batch, size, batches);
    CHECK(cudaGetLastError());
    usleep(20000);
  }
  return finish();
}
