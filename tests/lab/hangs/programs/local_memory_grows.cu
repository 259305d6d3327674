// A kernel with large arrays per thread needs more local memory than the context has, which is
// not given as long as a kernel runs: the one that waits for it.
#include "begin.cuh"

__global__ void await_fit(const volatile int* fitted, float* model) {
  if (threadIdx.x == 0)
    while (*fitted == 0) __nanosleep(100);
  __syncthreads();
  model[threadIdx.x] += 1;
}

__global__ void fit(const int* order, int n, float* model, int* fitted) {
  volatile float work[12 * 1024];  // 48 KiB per thread
  for (int i = 0; i < n; ++i) work[order[i]] = i;
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += work[order[n - 1 - i]];
  model[threadIdx.x] = sum;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(fitted, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *fitted = zeros<int>(1), *order = zeros<int>(4096);
  auto* model = zeros<float>(64);
  load(await_fit);
  load(fit);
  const auto waiting = stream_of_its_own(), fitting = stream_of_its_own();
  if (fixed) {  // the context gets its local memory, and keeps it
    fit<<<1, 64, 0, fitting>>>(order, 0, model, fitted);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemset(fitted, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
  }
  await_fit<<<1, 64, 0, waiting>>>(fitted, model);
  CHECK(cudaGetLastError());
  usleep(100000);
  fit<<<1, 64, 0, fitting>>>(order, 4096, model, fitted);
  CHECK(cudaGetLastError());
  return finish();
}
