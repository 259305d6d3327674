// Four elements of a team, as a PGAS library would run them on four GPUs, on one: each is a kernel
// in a stream of its own with its part of the symmetric heap, and all blocks meet.
#include "begin.cuh"

constexpr int kHeap = 200 * 1024, kElements = 4;

__global__ void exchange(int element, int* arrived, int all, float* out) {
  extern __shared__ float heap[];
  heap[threadIdx.x] = element * 1000 + threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < all) __nanosleep(100);
  }
  __syncthreads();
  out[(element * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = heap[threadIdx.x];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int blocks = fixed ? 32 : 40;
  auto* arrived = zeros<int>(1);
  auto* out = zeros<float>(kElements * 40 * 128);
  allow(exchange, kHeap);
  for (int element = 0; element < kElements; ++element) {
    exchange<<<blocks, 128, kHeap, stream_of_its_own()>>>(element, arrived, kElements * blocks,
                                                          out);
    usleep(20000);  // the next element starts
  }
  CHECK(cudaGetLastError());
  return finish();
}
