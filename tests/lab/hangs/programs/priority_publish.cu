// A stream of high priority does not help: the blocks that poll leave no thread on any SM.
#include "begin.cuh"

__global__ void __launch_bounds__(1024, 2)
    consume(const float* in, volatile int* epoch, float* out) {
  if (threadIdx.x == 0)
    while (*epoch == 0) {
    }
  __syncthreads();
  out[blockIdx.x * 1024 + threadIdx.x] = 2 * in[threadIdx.x];
}

__global__ void publish(float* in, int* epoch) {
  in[threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(epoch, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* in = zeros<float>(1024);
  auto* out = zeros<float>(264 * 1024);
  auto* epoch = zeros<int>(1);
  int least, greatest;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t low, high;
  CHECK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
  CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
  load(consume);
  load(publish);
  consume<<<fixed ? 132 : 264, 1024, 0, low>>>(in, epoch, out);
  publish<<<1, 256, 0, high>>>(in, epoch);
  CHECK(cudaGetLastError());
  return finish();
}
