// An asynchronous copy to pageable memory returns only when it is done. It is behind a kernel that
// waits for what the host would send next.
#include <vector>

#include "begin.cuh"

__global__ void accumulate(const volatile int* last, float* sums) {
  if (threadIdx.x == 0)
    while (*last == 0) __nanosleep(1000);
  __syncthreads();
  sums[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const size_t n = 1 << 20, bytes = n * sizeof(float);
  auto* sums = zeros<float>(n);
  int* last = shared_with_host<int>(1);
  std::vector<float> pageable(n);
  float* pinned;
  CHECK(cudaMallocHost(&pinned, bytes));
  load(accumulate);
  const auto stream = stream_of_its_own();
  accumulate<<<64, 256, 0, stream>>>(last, sums);
  CHECK(cudaGetLastError());
  float* target = fixed ? pinned : pageable.data();
  CHECK(cudaMemcpyAsync(target, sums, bytes, cudaMemcpyDeviceToHost, stream));
  *static_cast<volatile int*>(last) = 1;
  return finish();
}
