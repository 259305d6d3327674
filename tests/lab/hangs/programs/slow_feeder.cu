// A thread reads batches from a slow disk, three seconds for each, and tells a kernel that polls
// for them. Six batches are read.
#include <thread>

#include "begin.cuh"

__global__ void train(int batches, const volatile int* read, float* weights) {
  for (int batch = 1; batch <= batches; ++batch) {
    if (threadIdx.x == 0)
      while (*read < batch) __nanosleep(1000);
    __syncthreads();
    weights[threadIdx.x] += 0.1f * batch;
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  constexpr int kBatches = 6;
  int* read = shared_with_host<int>(1);
  auto* weights = zeros<float>(256);
  load(train);
  train<<<1, 256, 0, stream_of_its_own()>>>(kBatches, read, weights);
  CHECK(cudaGetLastError());
  std::thread reader([&] {
    for (int batch = 1; batch <= kBatches; ++batch) {
      usleep(3000000);
      *static_cast<volatile int*>(read) = batch;
    }
  });
  CHECK(cudaDeviceSynchronize());
  reader.join();
  return finish();
}
