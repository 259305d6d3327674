// An application with per-thread default streams calls a library that uses the legacy one. Its
// kernel waits for what the library computes.
#include <atomic>
#include <thread>

#include "begin.cuh"

__global__ void library_kernel(float* table, int* ready) {
  table[threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(ready, 1);
}

void library_fill(float* table, int* ready, cudaStream_t stream) {
  library_kernel<<<1, 128, 0, stream>>>(table, ready);
  CHECK(cudaGetLastError());
}

__global__ void look_up(const volatile int* ready, const float* table, float* out) {
  if (threadIdx.x == 0)
    while (*ready == 0) {
    }
  __syncthreads();
  out[threadIdx.x] = table[threadIdx.x];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *table = zeros<float>(128), *out = zeros<float>(128);
  auto* ready = zeros<int>(1);
  load(library_kernel);
  load(look_up);
  std::atomic<bool> launched{false};
  std::thread application([&] {
    CHECK(cudaSetDevice(0));
    look_up<<<1, 128, 0, cudaStreamPerThread>>>(ready, table, out);
    CHECK(cudaGetLastError());
    launched = true;
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  });
  while (!launched) usleep(1000);
  library_fill(table, ready, fixed ? stream_of_its_own() : cudaStreamLegacy);
  application.join();
  return finish();
}
