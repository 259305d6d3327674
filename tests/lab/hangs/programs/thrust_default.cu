// Thrust without a policy runs in the legacy default stream, which waits for a kernel of another
// stream, which waits for what Thrust computes.
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>

#include "begin.cuh"

__global__ void consume(const volatile int* offsets, int n, int* out) {
  if (threadIdx.x == 0)
    while (offsets[n - 1] == 0) __nanosleep(200);
  __syncthreads();
  out[threadIdx.x] = offsets[threadIdx.x];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int n = 1 << 16;
  auto *offsets = zeros<int>(n), *out = zeros<int>(256);
  const auto first = thrust::device_pointer_cast(offsets);
  load(consume);
  thrust::fill(first, first + n, 0);  // loads what it needs
  thrust::fill(thrust::cuda::par.on(cudaStreamPerThread), first, first + n, 0);
  thrust::fill(thrust::cuda::par_nosync.on(cudaStreamPerThread), first, first + n, 0);
  CHECK(cudaDeviceSynchronize());
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  if (fixed) {
    const auto side = stream_of_its_own();
    consume<<<1, 256, 0, stream>>>(offsets, n, out);
    thrust::fill(thrust::cuda::par_nosync.on(side), first, first + n, 1);
  } else {
    consume<<<1, 256, 0, stream>>>(offsets, n, out);
    thrust::fill(first, first + n, 1);
  }
  CHECK(cudaGetLastError());
  return finish();
}
