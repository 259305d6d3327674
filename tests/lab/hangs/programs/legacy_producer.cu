// A reader in a stream from cudaStreamCreate, and the writer in no stream at all.
#include "begin.cuh"

__global__ void reader(const volatile int* version, const float* table, float* out) {
  if (threadIdx.x == 0)
    while (*version < 1) {
    }
  __syncthreads();
  out[threadIdx.x] = table[threadIdx.x];
}

__global__ void writer(float* table, int* version) {
  table[threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(version, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* version = zeros<int>(1);
  auto *table = zeros<float>(128), *out = zeros<float>(128);
  load(reader);
  load(writer);
  cudaStream_t stream;
  CHECK(fixed ? cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)
              : cudaStreamCreate(&stream));
  reader<<<1, 128, 0, stream>>>(version, table, out);
  writer<<<1, 128>>>(table, version);
  CHECK(cudaGetLastError());
  return finish();
}
