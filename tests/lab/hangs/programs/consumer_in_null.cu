// The consumer is launched without a stream and waits for a producer on a stream of its own, which
// was made with the default flag and so starts behind what the null stream holds.
#include "begin.cuh"

constexpr int kItems = 64;

__global__ void consume(const volatile int* produced, const float* items, float* sum) {
  for (int item = threadIdx.x; item < kItems; item += blockDim.x) {
    while (*produced <= item) __nanosleep(100);
    atomicAdd(sum, items[item]);
  }
}

__global__ void produce(int* produced, float* items) {
  for (int item = 0; item < kItems; ++item) {
    items[item] = item;
    __threadfence();
    atomicAdd(produced, 1);
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* produced = zeros<int>(1);
  auto *items = zeros<float>(kItems), *sum = zeros<float>(1);
  load(consume);
  load(produce);
  cudaStream_t producer;
  CHECK(cudaStreamCreateWithFlags(&producer, fixed ? cudaStreamNonBlocking : cudaStreamDefault));
  consume<<<1, 32>>>(produced, items, sum);
  produce<<<1, 1, 0, producer>>>(produced, items);
  CHECK(cudaGetLastError());
  return finish();
}
