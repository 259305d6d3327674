// A template of a kernel has been used for float. Its instance for double is used first while the
// instance for float waits for it.
#include "begin.cuh"

template <class T>
__global__ void accumulate(const volatile int* before, int* done, T* sums, int count) {
  if (before != nullptr && threadIdx.x == 0)
    while (*before == 0) __nanosleep(100);
  __syncthreads();
  for (int at = threadIdx.x; at < count; at += blockDim.x) sums[at] += T(0.5);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(done, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* done = zeros<int>(2);
  auto* singles = zeros<float>(1024);
  auto* doubles = zeros<double>(1024);
  const cudaStream_t coarse = stream_of_its_own(), fine = stream_of_its_own();
  accumulate<float><<<1, 256, 0, coarse>>>(nullptr, done + 1, singles, 1024);
  if (fixed) accumulate<double><<<1, 256, 0, fine>>>(nullptr, done + 1, doubles, 1024);
  CHECK(cudaDeviceSynchronize());
  accumulate<float><<<1, 256, 0, coarse>>>(done, done + 1, singles, 1024);
  usleep(50000);  // the tolerance was not reached
  accumulate<double><<<1, 256, 0, fine>>>(nullptr, done, doubles, 1024);
  CHECK(cudaGetLastError());
  return finish();
}
