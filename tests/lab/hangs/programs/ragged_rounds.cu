// The threads of a block have rows of different lengths. In each round all of them meet at a
// cuda::barrier, and a thread whose row is done leaves the loop.
#include <cuda/barrier>

#include "begin.cuh"

using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void merge(const int* lengths, float* rows, bool drop) {
  __shared__ alignas(Barrier) char memory[sizeof(Barrier)];
  __shared__ float front[128];
  auto* barrier = reinterpret_cast<Barrier*>(memory);
  if (threadIdx.x == 0) init(barrier, blockDim.x);
  __syncthreads();
  const int length = lengths[blockIdx.x * blockDim.x + threadIdx.x];
  float sum = 0;
  for (int round = 0;; ++round) {
    if (round == length) {
      if (drop) barrier->arrive_and_drop();
      break;
    }
    front[threadIdx.x] = rows[threadIdx.x] + round;
    barrier->arrive_and_wait();
    sum += front[(threadIdx.x + 1) % blockDim.x];
    barrier->arrive_and_wait();
  }
  rows[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int rows = 66 * 128;
  auto* lengths = zeros<int>(rows);
  auto* values = zeros<float>(rows);
  int* wanted = static_cast<int*>(std::malloc(rows * sizeof(int)));
  for (int i = 0; i < rows; ++i) wanted[i] = 4 + i * 7 % 23;
  CHECK(cudaMemcpy(lengths, wanted, rows * sizeof(int), cudaMemcpyHostToDevice));
  load(merge);
  merge<<<66, 128>>>(lengths, values, fixed);
  CHECK(cudaGetLastError());
  return finish();
}
