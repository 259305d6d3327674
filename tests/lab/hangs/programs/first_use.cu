// The first launch of a kernel that another one, already running, waits for. Lazy loading.
#include "begin.cuh"

__global__ void consumer(const volatile int* full, float* data) {
  while (*full == 0) {
  }
  data[threadIdx.x] *= 2;
}

__global__ void producer(int* full, float* data) {
  data[threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(full, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* full = zeros<int>(1);
  auto* data = zeros<float>(128);
  if (fixed) load(producer);
  const auto consuming = stream_of_its_own(), producing = stream_of_its_own();
  consumer<<<1, 128, 0, consuming>>>(full, data);
  CHECK(cudaGetLastError());
  producer<<<1, 128, 0, producing>>>(full, data);
  CHECK(cudaGetLastError());
  return finish();
}
