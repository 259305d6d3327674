// One part of the program uses cudaStreamPerThread, and another, written before, the null stream.
// The per-thread stream is a blocking one, so what the older part launches waits for it.
#include "begin.cuh"

__global__ void match(const volatile int* indexed, const int* index, int* found) {
  while (*indexed == 0) __nanosleep(100);
  found[blockIdx.x * blockDim.x + threadIdx.x] = index[threadIdx.x];
}

__global__ void build_index(int* index, int* indexed) {
  index[threadIdx.x] = blockDim.x - threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(indexed, 1);
}

void index_of_older_part(int* index, int* indexed, cudaStream_t stream = nullptr) {
  build_index<<<1, 64, 0, stream>>>(index, indexed);
  CHECK(cudaGetLastError());
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *indexed = zeros<int>(1), *index = zeros<int>(64), *found = zeros<int>(4 * 64);
  load(match);
  load(build_index);
  const cudaStream_t own = stream_of_its_own();
  match<<<4, 64, 0, cudaStreamPerThread>>>(indexed, index, found);
  CHECK(cudaGetLastError());
  if (fixed)
    index_of_older_part(index, indexed, own);
  else
    index_of_older_part(index, indexed);
  return finish();
}
