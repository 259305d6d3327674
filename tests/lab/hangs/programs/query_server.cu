// A server that stays on the GPU sends one query to a kernel of another stream, and waits for the
// answer. Its blocks leave fewer registers on each SM than a block that answers needs.
#include "begin.cuh"

template <int kLive>
__device__ float churn(float seed, int rounds) {
  float live[kLive];
#pragma unroll
  for (int i = 0; i < kLive; ++i) live[i] = seed * (i + 1);
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kLive; ++i) live[i] = fmaf(live[i], live[(i + 3) % kLive], 0.5f);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kLive; ++i) sum += live[i] * live[(i + 1) % kLive];
  return sum;
}

__global__ void __launch_bounds__(1024) serve(float* table, volatile int* answered, int rounds) {
  float value = churn<36>(table[threadIdx.x], rounds);
  if (threadIdx.x == 0)
    while (*answered == 0) __nanosleep(256);
  __syncthreads();
  table[blockIdx.x * 1024 + threadIdx.x] = value;
}

__global__ void __launch_bounds__(512) answer(float* table, int* answered, int rounds) {
  table[blockIdx.x * 512 + threadIdx.x] = churn<36>(table[threadIdx.x], rounds);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(answered, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* table = zeros<float>(132 * 1024);
  auto* answered = zeros<int>(1);
  load(serve);
  load(answer);
  const auto server = stream_of_its_own(), client = stream_of_its_own();
  serve<<<fixed ? 100 : 132, 1024, 0, server>>>(table, answered, 100);
  CHECK(cudaGetLastError());
  usleep(100000);
  answer<<<4, 512, 0, client>>>(table, answered, 100);
  CHECK(cudaGetLastError());
  return finish();
}
