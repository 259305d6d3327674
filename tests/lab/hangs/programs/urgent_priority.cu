// A background job of low priority takes the GPU and waits for the result of an urgent kernel,
// which comes in a stream of the highest priority.
#include "begin.cuh"

__global__ void __launch_bounds__(1024, 2)
    background(int* started, volatile int* all_started, const volatile int* route, float* cells) {
  if (threadIdx.x == 0) {
    if (atomicAdd(started, 1) == gridDim.x - 1) *all_started = 1;
    while (*route < 8) __nanosleep(1000);
  }
  __syncthreads();
  cells[blockIdx.x * 1024 + threadIdx.x] = *route;
}

__global__ void urgent(int* route, float* costs) {
  costs[blockIdx.x * 256 + threadIdx.x] += 1;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(route, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *started = zeros<int>(1), *route = zeros<int>(1);
  auto *cells = zeros<float>(264 * 1024), *costs = zeros<float>(8 * 256);
  auto* all_started = shared_with_host<int>(1);
  load(background);
  load(urgent);
  int lowest, highest;
  CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  cudaStream_t low, high;
  CHECK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, lowest));
  CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, highest));
  background<<<fixed ? 260 : 264, 1024, 0, low>>>(started, all_started, route, cells);
  CHECK(cudaGetLastError());
  while (*static_cast<volatile int*>(all_started) == 0) {
  }
  urgent<<<8, 256, 0, high>>>(route, costs);
  CHECK(cudaGetLastError());
  return finish();
}
