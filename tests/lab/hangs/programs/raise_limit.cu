// The stack of the device is enlarged for a deep recursion that comes next, while a kernel waits
// for the host to say that it is prepared.
#include "begin.cuh"

__global__ void explore(const volatile int* prepared, float* frontier) {
  if (threadIdx.x == 0)
    while (*prepared == 0) __nanosleep(500);
  __syncthreads();
  frontier[threadIdx.x] = 1;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  int* prepared = shared_with_host<int>(1);
  auto* frontier = zeros<float>(64);
  load(explore);
  const auto enlarge = [] { CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 32 * 1024)); };
  if (fixed) enlarge();
  explore<<<1, 64, 0, stream_of_its_own()>>>(prepared, frontier);
  CHECK(cudaGetLastError());
  usleep(50000);
  if (!fixed) enlarge();
  *static_cast<volatile int*>(prepared) = 1;
  return finish();
}
