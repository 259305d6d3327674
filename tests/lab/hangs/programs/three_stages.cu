// Decode, filter and store as three kernels that stay, one block of each per SM, with credits from
// the last stage to the first. Shared memory is enough for two of them.
#include "begin.cuh"

constexpr int kShared = 90 * 1024, kItems = 64;

__device__ void await_count(const volatile int* count, int wanted) {
  if (threadIdx.x == 0)
    while (*count < wanted) __nanosleep(128);
  __syncthreads();
}

__device__ void bump(int* count) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(count, 1);
}

__global__ void decode(int* decoded, const int* credits) {
  extern __shared__ int page[];
  for (int item = 0; item < kItems; ++item) {
    await_count(&credits[blockIdx.x], item - 3);
    page[threadIdx.x] = item;
    bump(&decoded[blockIdx.x]);
  }
}

__global__ void filter(const int* decoded, int* filtered) {
  extern __shared__ int page[];
  for (int item = 1; item <= kItems; ++item) {
    await_count(&decoded[blockIdx.x], item);
    page[threadIdx.x] = item;
    bump(&filtered[blockIdx.x]);
  }
}

__global__ void store(const int* filtered, int* credits) {
  extern __shared__ int page[];
  for (int item = 1; item <= kItems; ++item) {
    await_count(&filtered[blockIdx.x], item);
    page[threadIdx.x] = item;
    bump(&credits[blockIdx.x]);
  }
}

// As much shared memory as the SM has, so that blocks of several kernels share it.
template <class Kernel>
void prepare(Kernel kernel) {
  allow(kernel, kShared);
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxShared));
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *decoded = zeros<int>(132), *filtered = zeros<int>(132), *credits = zeros<int>(132);
  prepare(decode);
  prepare(filter);
  prepare(store);
  const int bytes = fixed ? 60 * 1024 : kShared;
  decode<<<132, 128, bytes, stream_of_its_own()>>>(decoded, credits);
  filter<<<132, 128, bytes, stream_of_its_own()>>>(decoded, filtered);
  store<<<132, 128, bytes, stream_of_its_own()>>>(filtered, credits);
  CHECK(cudaGetLastError());
  return finish();
}
