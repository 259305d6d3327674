// Gradient descent with its state in registers, and a barrier over the grid in each step.
#include "begin.cuh"

constexpr int kOwn = 14;  // doubles in the registers of each thread

__global__ void __launch_bounds__(1024) descend(double* weights, int steps, int* arrived) {
  double own[kOwn];
  const int first = blockIdx.x * blockDim.x + threadIdx.x;
  const int stride = gridDim.x * blockDim.x;
#pragma unroll
  for (int k = 0; k < kOwn; ++k) own[k] = weights[first + k * stride];
  for (int step = 1; step <= steps; ++step) {
    const double rate = weights[step] + 1e-3;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) own[k] -= rate * own[k] * own[(k + 1) % kOwn];
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(arrived, 1);
      while (atomicAdd(arrived, 0) < step * static_cast<int>(gridDim.x)) {
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < kOwn; ++k) weights[first + k * stride] = own[k];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int blocks = fixed ? 132 : 140;
  auto* weights = zeros<double>(static_cast<size_t>(blocks) * 1024 * kOwn);
  auto* arrived = zeros<int>(1);
  load(descend);
  descend<<<blocks, 1024, 0, stream_of_its_own()>>>(weights, 20, arrived);
  CHECK(cudaGetLastError());
  return finish();
}
