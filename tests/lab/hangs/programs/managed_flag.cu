// A flag in managed memory, which both sides can write at any time. The host first waits for the
// stream, to be on the safe side.
#include "begin.cuh"

__global__ void settle(const volatile int* accepted, float* balance) {
  if (threadIdx.x == 0)
    while (*accepted == 0) __nanosleep(1000);
  __syncthreads();
  balance[threadIdx.x] += 1;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  int* accepted;
  CHECK(cudaMallocManaged(&accepted, sizeof(int)));
  *accepted = 0;
  auto* balance = zeros<float>(64);
  load(settle);
  const auto stream = stream_of_its_own();
  settle<<<1, 64, 0, stream>>>(accepted, balance);
  CHECK(cudaGetLastError());
  usleep(50000);
  if (fixed) *static_cast<volatile int*>(accepted) = 1;
  CHECK(cudaStreamSynchronize(stream));
  *static_cast<volatile int*>(accepted) = 1;
  return finish();
}
