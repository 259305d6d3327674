// A cuda::barrier for all blocks expects one arrival per warp, and only one per block arrives.
#include <cuda/barrier>
#include <new>

#include "begin.cuh"

using Barrier = cuda::barrier<cuda::thread_scope_device>;

__global__ void set_up(Barrier* barrier, int expected) { new (barrier) Barrier(expected); }

__global__ void exchange_rows(Barrier* barrier, float* rows) {
  rows[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) barrier->arrive_and_wait();
  __syncthreads();
  const int other = (blockIdx.x + 1) % gridDim.x;
  rows[blockIdx.x * blockDim.x + threadIdx.x] += rows[other * blockDim.x + threadIdx.x];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int blocks = 64, threads = 128;
  Barrier* barrier;
  CHECK(cudaMalloc(&barrier, sizeof(Barrier)));
  auto* rows = zeros<float>(blocks * threads);
  load(exchange_rows);
  set_up<<<1, 1>>>(barrier, fixed ? blocks : blocks * threads / 32);
  exchange_rows<<<blocks, threads>>>(barrier, rows);
  CHECK(cudaGetLastError());
  return finish();
}
