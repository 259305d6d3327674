// Two streams of different priority, made with the default flag. A heartbeat is launched without a
// stream between a background kernel and the urgent one that it waits for.
#include "begin.cuh"

__global__ void background(const volatile int* orders, float* x) {
  if (threadIdx.x == 0)
    while (*orders == 0) __nanosleep(500);
  __syncthreads();
  x[blockIdx.x * 256 + threadIdx.x] = *orders;
}

__global__ void heartbeat(unsigned* beats) { ++*beats; }

__global__ void urgent(int* orders) { atomicExch(orders, 7); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* orders = zeros<int>(1);
  auto* beats = zeros<unsigned>(1);
  auto* x = zeros<float>(64 * 256);
  load(background);
  load(heartbeat);
  load(urgent);
  int least, greatest;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  const unsigned flag = fixed ? cudaStreamNonBlocking : cudaStreamDefault;
  cudaStream_t low, high;
  CHECK(cudaStreamCreateWithPriority(&low, flag, least));
  CHECK(cudaStreamCreateWithPriority(&high, flag, greatest));
  background<<<64, 256, 0, low>>>(orders, x);
  heartbeat<<<1, 1>>>(beats);
  urgent<<<1, 1, 0, high>>>(orders);
  CHECK(cudaGetLastError());
  return finish();
}
