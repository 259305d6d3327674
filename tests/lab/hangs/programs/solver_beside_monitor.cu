// A solver fills the GPU, by the calculator of occupancy. But a monitor is on 40 SMs already, and
// waits for the solver's result.
#include "begin.cuh"

__global__ void monitor(const volatile int* done, float* history) {
  while (*done == 0) __nanosleep(1000);
  history[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void sweep(float* x, unsigned* tickets, int* done) {
  for (unsigned step = 1; step <= 6; ++step) {
    x[blockIdx.x * blockDim.x + threadIdx.x] += step;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(tickets, 1u);
      while (atomicAdd(tickets, 0u) < step * gridDim.x) __nanosleep(100);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicExch(done, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *history = zeros<float>(40 * 512), *x = zeros<float>(528 * 512);
  auto* tickets = zeros<unsigned>(1);
  auto* done = zeros<int>(1);
  load(monitor);
  int per_sm;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, sweep, 512, 0));
  monitor<<<40, 512, 0, stream_of_its_own()>>>(done, history);
  CHECK(cudaGetLastError());
  usleep(50000);
  sweep<<<132 * (fixed ? per_sm - 1 : per_sm), 512, 0, stream_of_its_own()>>>(x, tickets, done);
  CHECK(cudaGetLastError());
  return finish();
}
