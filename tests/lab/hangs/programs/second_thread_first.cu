// One thread runs a kernel that waits for a request, and another thread launches the kernel that
// makes it, for the first time.
#include <atomic>
#include <thread>

#include "begin.cuh"

__global__ void handle(const volatile int* requested, float* reply) {
  if (threadIdx.x == 0)
    while (*requested == 0) __nanosleep(100);
  __syncthreads();
  reply[threadIdx.x] = 1;
}

__global__ void request(int* requested, const float* input, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += sinf(input[i]) * cosf(input[i]);
  if (__syncthreads_or(sum >= 0) && threadIdx.x == 0) atomicExch(requested, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* requested = zeros<int>(1);
  auto *input = zeros<float>(4096), *reply = zeros<float>(64);
  load(handle);
  if (fixed) load(request);
  std::atomic<bool> running{false};
  std::thread server([&] {
    CHECK(cudaSetDevice(0));
    const auto stream = stream_of_its_own();
    handle<<<1, 64, 0, stream>>>(requested, reply);
    CHECK(cudaGetLastError());
    running = true;
    CHECK(cudaStreamSynchronize(stream));
  });
  std::thread client([&] {
    CHECK(cudaSetDevice(0));
    const auto stream = stream_of_its_own();
    while (!running) usleep(1000);
    usleep(100000);
    request<<<1, 128, 0, stream>>>(requested, input, 4096);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
  });
  server.join();
  client.join();
  return finish();
}
